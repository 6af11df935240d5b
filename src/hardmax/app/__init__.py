"""The explorer: a thin shell in the browser over the public functions, one page per capability.

It has no mathematics of its own. :mod:`.page` says what a page is, :mod:`.session` what it can ask for, :mod:`.shell`
puts it into the frame that all pages share, and :mod:`.server` serves it.
"""
