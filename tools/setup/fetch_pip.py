"""Fetches pip's wheel from the package index, for a Python that comes without pip and ensurepip.

Asks where pip itself would ask: PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, pip.conf, HTTPS_PROXY, PIP_PROXY,
PIP_CERT and SSL_CERT_FILE count. The wheel's SHA-256 must be the one that the index states.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

DEFAULT_INDEX = "https://pypi.org/simple"
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"  # PEP 691
TIMEOUT_S = 60
LIMIT = 64 * 2**20  # bytes; an index page of pip has under 1 MiB, a wheel 2 MiB


class PipFetchError(Exception):
    """No index gave a pip that can be trusted; the message says which was asked and what it said."""


@dataclass(frozen=True)
class Wheel:
    """One pip wheel on an index."""

    version: tuple[int, ...]
    url: str
    sha256: str
    requires_python: str


def fetch_pip(folder: Path, python: tuple[int, int]) -> Path:
    """Downloads the newest pip that runs on this Python.

    Args:
        folder: where the wheel is put.
        python: major and minor version of the Python that will run it.

    Returns:
        The wheel's path.

    Raises:
        PipFetchError: no index could be read, none has a fitting pip, or the file is not what the index says.
    """
    settings = pip_settings(dict(os.environ))
    opener = make_opener(settings)
    said: list[str] = []
    for index in index_urls(settings):
        try:
            wheel = newest(read_index(opener, index), python)
            return download(opener, wheel, folder)
        except (OSError, ValueError, LookupError, PipFetchError) as error:
            said.append(f"  {without_password(index)}: {error}")
    raise PipFetchError("pip could not be fetched:\n" + "\n".join(said))


def pip_settings(env: dict[str, str]) -> dict[str, str]:
    """The settings of pip's configuration files and environment variables, the stronger over the weaker."""
    settings: dict[str, str] = {}
    for path in config_files(env):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise PipFetchError(f"{path} cannot be read: {error}") from error
        for section in ("global", "install"):
            if parser.has_section(section):
                settings |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    return settings | {
        key[4:].lower().replace("_", "-"): value for key, value in env.items() if key.startswith("PIP_") and value
    }


def config_files(env: dict[str, str]) -> list[Path]:
    """Where pip looks for its configuration on Linux, weakest first."""
    own = env.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return []
    home = Path(env.get("HOME", "/"))
    shared = [Path(p) / "pip" / "pip.conf" for p in env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if p]
    user = [
        home / ".pip" / "pip.conf",
        Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf",
    ]
    return [*shared, Path("/etc/pip.conf"), *user, *([Path(own)] if own else [])]


def index_urls(settings: dict[str, str]) -> list[str]:
    """The indexes to ask, the main one first."""
    return [settings.get("index-url", DEFAULT_INDEX), *settings.get("extra-index-url", "").split()]


def make_opener(settings: dict[str, str]) -> urllib.request.OpenerDirector:
    """An opener with pip's certificates and proxy; urllib itself minds HTTPS_PROXY and SSL_CERT_FILE."""
    context = ssl.create_default_context()
    if cert := settings.get("cert"):
        try:
            context.load_verify_locations(cert)
        except OSError as error:
            raise PipFetchError(f"the certificates that PIP_CERT or pip.conf names cannot be read: {cert}") from error
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if proxy := settings.get("proxy"):
        handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
    return urllib.request.build_opener(*handlers)


def get(opener: urllib.request.OpenerDirector, url: str, accept: str = "*/*") -> tuple[bytes, str, str]:
    """One GET: the body, its content type, and the address that answered."""
    parts = urllib.parse.urlsplit(url)
    headers = {"Accept": accept, "User-Agent": "nsw-setup"}
    if parts.username:  # urllib takes no user:password in an address
        secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode()
        url = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    with opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_S) as answer:  # noqa: S310
        return answer.read(LIMIT), answer.headers.get_content_type(), answer.url


def read_index(opener: urllib.request.OpenerDirector, index: str) -> list[Wheel]:
    """Every pip wheel of an index, from its JSON or its HTML page."""
    url = index.rstrip("/") + "/pip/"
    if url.startswith("file:"):
        url += "index.html"
    body, kind, base = get(opener, url, ACCEPT)
    files = json_files(body) if kind.endswith("json") else html_files(body)
    found = (as_wheel(file, url if "@" in url else base) for file in files)
    return [wheel for wheel in found if wheel]


def json_files(body: bytes) -> list[dict[str, str]]:
    """The files of a PEP 691 page, in the words of the HTML page."""
    return [
        {
            "href": file["url"],
            "sha256": file.get("hashes", {}).get("sha256", ""),
            "data-requires-python": file.get("requires-python") or "",
        }
        for file in json.loads(body)["files"]
        if not file.get("yanked")
    ]


def html_files(body: bytes) -> list[dict[str, str]]:
    """The links of a PEP 503 page."""
    links: list[dict[str, str]] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            link = {name: value or "" for name, value in attrs}
            if tag == "a" and "data-yanked" not in link and "href" in link:
                link["href"], _, mark = link["href"].partition("#")
                links.append({**link, "sha256": mark.removeprefix("sha256=") if mark.startswith("sha256=") else ""})

    Links().feed(body.decode("utf-8", "replace"))
    return links


def as_wheel(file: dict[str, str], base: str) -> Wheel | None:
    """The file as a wheel of a final pip release, or None."""
    url = urllib.parse.urljoin(base, file["href"])
    name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
    match = re.fullmatch(r"pip-(\d+(?:\.\d+)+)-py3-none-any\.whl", name)
    if not match:
        return None
    version = tuple(int(part) for part in match[1].split("."))
    return Wheel(version, url, file["sha256"], file.get("data-requires-python", ""))


def newest(wheels: list[Wheel], python: tuple[int, int]) -> Wheel:
    """The newest wheel that says it runs on this Python."""
    fitting = [wheel for wheel in wheels if fits(wheel.requires_python, python)]
    if not fitting:
        raise LookupError(f"has {len(wheels)} wheels of pip, none for Python {python[0]}.{python[1]}")
    return max(fitting, key=lambda wheel: wheel.version)


def fits(requires: str, python: tuple[int, int]) -> bool:
    """True when `requires` (such as `>=3.10`) has no bound that this Python breaks."""
    for sign, major, minor in re.findall(r"(>=|<)\s*(\d+)(?:\.(\d+))?", requires):
        bound = (int(major), int(minor or 0))
        if (python < bound) if sign == ">=" else (python >= bound):
            return False
    return True


def download(opener: urllib.request.OpenerDirector, wheel: Wheel, folder: Path) -> Path:
    """Puts the wheel in the folder once its hash is right."""
    name = urllib.parse.unquote(urllib.parse.urlsplit(wheel.url).path.rpartition("/")[2])
    if not wheel.sha256:
        raise PipFetchError(f"states no sha256 for {name}, so it cannot be verified")
    body, _, _ = get(opener, wheel.url)
    found = hashlib.sha256(body).hexdigest()
    if found != wheel.sha256:
        raise PipFetchError(f"{name} is damaged: its sha256 is {found}, the index says {wheel.sha256}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(body)
    return path


def without_password(url: str) -> str:
    """The address as it may be shown."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
