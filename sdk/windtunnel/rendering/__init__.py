"""How a report looks: one document, drawn as text, HTML or a plot. No figure is computed here."""
