"""FIFOs, devices and sockets where a command expects a file: refused at once, with a sentence, and never waited for."""

import os
import socket

import pytest

from nsw.campaign.start import copy_files
from nsw.errors import CampaignError
from nsw.safe_files import NotPlainError, open_regular
from tests.cli.conftest import HEAD, SITES, in_folder

NOT_REGULAR = "is not a regular file"
RECIPE = HEAD + "app: {command: echo}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("NSW_ROOT", "NSW_SITES", "NSW_SITE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "r.yaml").write_text(RECIPE)
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def test_what_is_no_regular_file_is_not_opened_and_a_link_to_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the whole name may be too long for a socket
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind("socket")
    for path in (tmp_path / "fifo", tmp_path / "link", tmp_path / "socket", tmp_path, "/dev/null"):
        with pytest.raises(NotPlainError, match="it is not a regular file"):
            open_regular(path)
    (tmp_path / "file").write_text("text")
    (tmp_path / "good").symlink_to("file")
    with os.fdopen(open_regular(tmp_path / "good")) as file:
        assert file.read() == "text"


@pytest.mark.parametrize("words", [("plan", "r.yaml"), ("render", "r.yaml"), ("sites",)], ids=" ".join)
def test_a_fifo_as_the_user_s_own_sites_file_is_an_error(folder, words, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    (folder / "nsw").mkdir()
    os.mkfifo(folder / "nsw" / "sites.yaml")
    said = in_folder(folder, *words)
    assert said.code == 2
    assert f"sites.yaml: cannot be read: it {NOT_REGULAR}" in said.err


def test_a_fifo_or_device_as_a_sites_file_by_name_is_an_error(folder):
    for name in ("fifo", "/dev/zero"):
        said = in_folder(folder, "plan", "r.yaml", "--sites", name)
        assert said.code == 2
        assert f"{name}: cannot be read: it {NOT_REGULAR}" in said.err


@pytest.mark.parametrize("name", ["fifo", "/dev/zero"])
def test_a_fifo_or_device_as_a_recipe_is_an_error(folder, name):
    said = in_folder(folder, "plan", name, "--site", "local")
    assert said.code == 2
    assert f"{name} {NOT_REGULAR}" in said.err


@pytest.mark.parametrize("name", ["fifo", "endless"])
def test_a_fifo_or_device_that_a_recipe_lists_is_an_error_at_its_line(folder, name):
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "r.yaml").write_text(f"{HEAD}app:\n  command: echo\n  files: [{name}]\n")
    said = in_folder(folder, "plan", "r.yaml", "--site", "local")
    assert said.code == 2
    assert f"r.yaml:7:11: '{name}' is neither a regular file nor a folder, so it cannot be copied" in said.err


@pytest.mark.parametrize("target", [None, "/dev/zero"])
def test_a_fifo_or_device_in_a_folder_that_a_recipe_lists_is_not_copied(tmp_path, target):
    (source := tmp_path / "source").mkdir()
    (tmp_path / "app").mkdir()
    (source / "x").symlink_to(target) if target else os.mkfifo(source / "x")
    with pytest.raises(CampaignError, match=r"source/x cannot be copied into the campaign: .*it is not a regular file"):
        copy_files([(str(source), "source")], tmp_path / "app")


def test_a_fifo_as_a_template_of_a_site_is_an_error(folder):
    (folder / "sites.yaml").write_text(SITES.replace("gpus:", "templates: {finish: fifo}, gpus:", 1))
    said = in_folder(folder, "render", "r.yaml", "--site", "here", "--sites", "sites.yaml")
    assert said.code == 2
    assert "there is no file 'fifo' beside the sites file" in said.err
