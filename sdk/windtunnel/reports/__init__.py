"""One report a file or folder: its data, sections, `to_dict` and charts."""
