"""The web page of `windtunnel ui`: what the service knows, as HTML below /ui, on the backend's own port.

    app      the application: a table of pages, behind the guard
    guard    checks of every request: cookie, origin, CSRF token; the headers of every answer
    access   tokens and cookies, all derived from the home's key
    site     what all pages use: the service, templates, live updates, threads
    pages    one file for each page
    job      what the page of one job shows: its log, phases, metrics, cores, findings, request
    charts   charts as SVG
    tensorboard  a job's TensorBoard, in a process of its own

The page calls the same methods of the service as the API does, and has no other access to the record. Clusters, which
the service does not know, are read from their folders. This package is imported at the first request below /ui.
"""
