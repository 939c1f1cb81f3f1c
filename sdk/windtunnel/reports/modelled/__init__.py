"""The modelled part of reports, as sections, data and charts; shared by all reports that show it."""
