"""Links of the built site that lead nowhere: mkdocs checks neither frames nor what one language shows of the other."""
import html
import re
from urllib.parse import unquote, urlsplit

LINK = re.compile(r'(?:href|src)="([^"]+)"')
NAME = re.compile(r'\b(?:id|name)="([^"]+)"')


def broken_links(site):
    # The page of `unisono view` is a program, and its fragments are not names.
    pages = {path: path.read_text() for path in site.rglob("*.html") if path.name != "unisono.html"}
    names = {path: set(NAME.findall(text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for link in LINK.findall(text):
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc or parts.path.startswith("/"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            is_named = not parts.fragment or target not in names or unquote(parts.fragment) in names[target]
            if not target.exists() or not is_named:
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken
