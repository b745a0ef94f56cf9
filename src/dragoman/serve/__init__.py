"""Models behind a web service: a page that looks inside them, and interfaces for programs.

- `shelf`: which models there are, loaded when somebody asks for them;
- `interpreter`: printed text in, printed text out;
- `desk`: requests that arrive together are answered together, by one worker;
- `guards`: what keeps requests in bounds; `limits`: the bounds;
- `libre`: the protocol of LibreTranslate; `own`: scores, n-best lists, attention, lattices, next words, samples;
- `app`: all of it as one application.
"""
