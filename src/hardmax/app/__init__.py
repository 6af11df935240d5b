"""The explorer: pages in the browser that call the public functions, one page per capability.

:mod:`.page` is the base class of a page, :mod:`.session` has its messages and jobs, :mod:`.layout` its cards,
:mod:`.shell` the frame around it, and :mod:`.server` serves it.
"""
