"""The page of `windtunnel ui`: the service as HTML, on the backend's own port, below /ui.

    app      the application: a table of pages, behind the guard
    guard    who may ask: cookie, origin, CSRF token; the headers of every answer
    access   tokens and cookies, all derived from the home's key
    site     what a page has in hand: the service, templates, live parts, threads
    pages    one file a page
    job      what the page of one job says: its log, phases, metrics, cores, findings, request
    charts   SVG, made here
    tensorboard  a job's TensorBoard, in a process of its own

It calls the methods that the API's operations call, and knows no other way to the record; clusters, which the service
does not know, it reads from their folders. Nothing of it is imported before the first request below /ui.
"""
