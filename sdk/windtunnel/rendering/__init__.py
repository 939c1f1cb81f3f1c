"""Draws a report's document as text, HTML, Markdown or charts. Computes no figure."""
