"""Finds in the text of a CUDA script what must change for Trainium, and writes the sure changes as a diff.

Nothing is run or imported. Positions are those of `ast`, and edits replace the text between them: comments and
formatting stay, and one reading gives both the findings and the diff.
"""
