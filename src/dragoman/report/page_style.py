"""How a page looks: in light and in dark, on a phone and on a desk."""

from __future__ import annotations

LEVELS = 20  # shades of a heat map
HOT = 17  # from this shade on the letters on it are white


def _shades() -> str:
    return "".join(
        f".heat .a{level} {{ background: rgb(var(--heat) / {level / LEVELS:g}) }}\n" for level in range(1, LEVELS + 1)
    )


# Contrast of letters on a heat map: at least 4.5 to 1 on every shade, in light and in dark.
STYLE = """\
:root {
  color-scheme: light dark;
  --ink: #1c1e21; --quiet: #5a6068; --paper: #ffffff; --raised: #f3f4f6; --rule: #d7dae0; --link: #0b57b0;
  --heat: 0 90 180; --on-heat: #000000; --on-hot: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e6ea; --quiet: #a4abb6; --paper: #15171b; --raised: #1e2126; --rule: #3a3f47; --link: #8ab8ff;
    --heat: 35 100 185; --on-heat: #ffffff; --on-hot: #ffffff;
  }
}
* { box-sizing: border-box }
body {
  margin: 0 auto; max-width: 68rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", "Helvetica Neue", Arial, "Noto Sans", "Noto Sans CJK JP", sans-serif;
  overflow-wrap: break-word;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1rem 0 }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.2rem 0 .6rem }
nav h2 { font-size: 1rem; margin: 1rem 0 .3rem; color: var(--quiet) }
nav ol { margin: 0; padding-left: 2.2rem }
a { color: var(--link) }
p { max-width: 44rem; white-space: pre-line }
pre, .scroll { overflow-x: auto; max-width: 100% }
pre {
  background: var(--raised); border: 1px solid var(--rule); border-radius: .4rem; padding: .8rem;
  font: .85rem/1.3 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, "Noto Sans Mono CJK JP", monospace;
}
figure { margin: 1.2rem 0 }
figcaption { color: var(--quiet); font-size: .9rem; margin-top: .4rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule) }
thead th { color: var(--quiet); font-weight: 600; vertical-align: bottom }
.number { text-align: right }
td.number, td:first-child { white-space: nowrap }
figure svg { display: block; width: 100%; min-width: 34rem; height: auto; background: #ffffff; border-radius: .3rem }
figure svg * { stroke-linejoin: round; stroke-linecap: butt }
.heat { font-size: .85rem }
.heat th { font-weight: normal; color: var(--ink); border: 0; white-space: nowrap; padding: .1rem .4rem }
.heat thead th { padding: .3rem 0; text-align: center }
.heat thead span { writing-mode: vertical-rl }
.heat span { display: inline-block; max-height: 11rem; max-width: 11rem; overflow: hidden; text-overflow: ellipsis }
.heat thead td { border: 0 }
.heat tbody th { position: sticky; left: 0; background: var(--paper); text-align: right; vertical-align: middle }
.heat tbody td {
  min-width: 1.9rem; height: 1.9rem; padding: 0; text-align: center; vertical-align: middle;
  border: 1px solid var(--rule); color: var(--on-heat);
}
.heat tbody .hot { color: var(--on-hot) }
@media print { .scroll, pre { overflow: visible } }
""" + _shades()
