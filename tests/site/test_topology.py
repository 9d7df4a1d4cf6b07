"""Racks of nodes: lists of nodes, Slurm's topology in its forms, and what is neither."""

import pytest

from nsw.errors import InputError
from nsw.recipe.units import Fault
from nsw.site.load import read_sites
from nsw.site.topology import expand_hostlist, parse_topology, racks_by_node

# of `scontrol show topology`: a switch above the leaves repeats their nodes
TREE = """SwitchName=isw10100 Level=0 LinkSpeed=1 Nodes=lrdn[0001-0003,0013]
SwitchName=isw10102 Level=0 LinkSpeed=1 Nodes=lrdn0004
SwitchName=isw-L2-CELLG1 Level=1 LinkSpeed=1 Nodes=lrdn[0001-0004,0013] Switches=isw1[0100,0102]
"""
CONF = """# leaf switches
switchname=s0 nodes=tux[0-1] \\
    LinkSpeed=900
SwitchName=s1 Nodes=tux2,tux3   # the old ones
SwitchName=s2 Switches=s[0-1]
"""
BLOCKS = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockSizes=2,4\n"


@pytest.mark.parametrize(
    ("text", "racks"),
    [
        ("n1: r1\nn[2-3]: r2 # new\n\n", {"n1": "r1", "n2": "r2", "n3": "r2"}),
        ("'n[01,03]': \"r1\"\nn2 r2", {"n01": "r1", "n03": "r1", "n2": "r2"}),
        ("n1.site.org: r1", {"n1.site.org": "r1", "n1": "r1"}),
        (TREE, {**dict.fromkeys(("lrdn0001", "lrdn0002", "lrdn0003", "lrdn0013"), "isw10100"), "lrdn0004": "isw10102"}),
        (CONF, {"tux0": "s0", "tux1": "s0", "tux2": "s1", "tux3": "s1"}),
        (BLOCKS, {"n1": "b1", "n2": "b1"}),
    ],
)
def test_files_of_nodes_and_racks(text, racks):
    assert racks_by_node(parse_topology(text)) == racks


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a1,b[1-2]", ["a1", "b1", "b2"]),
        ("g[08-10]x[1,3]", ["g08x1", "g08x3", "g09x1", "g09x3", "g10x1", "g10x3"]),
    ],
)
def test_lists_of_nodes(text, names):
    assert expand_hostlist(text) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-2: r1", "'n[1-2' is no list of at most 100,000 nodes"),
        ("n[3-1]: r1", "'3-1' in 'n[3-1]' is no range of nodes"),
        ("n[1-999999999]: r1", "'1-999999999' in 'n[1-999999999]' is no range of nodes"),
        ("n[1-99999]x[1-99999]: r1", "'n[1-99999]x[1-99999]' is no list of at most 100,000 nodes"),
        ("n1: r1\nwhat is this", "line 2 is 'what is this', and no `node: rack`"),
        ("SwitchName=s2 Switches=s[0-1]\n", "there is no node in it"),
        ("", "there is no node in it"),
    ],
)
def test_what_is_no_topology_says_why(text, message):
    with pytest.raises(Fault) as caught:
        parse_topology(text)
    assert caught.value.message == message
    assert caught.value.hint


def site(tmp_path, topology):
    path = tmp_path / "sites.yaml"
    path.write_text(f"nsw: 1\nsites:\n  mine:\n    scheduler: slurm\n    topology: {topology}\n")
    return path


def test_a_site_has_its_racks_by_a_map_or_a_file_beside_it(tmp_path):
    (tmp_path / "racks.txt").write_text("node[1-2]: r1\n")
    for topology in ("racks.txt", "{'node[1-2]': r1}"):
        (loaded,) = read_sites(site(tmp_path, topology))
        assert loaded.site.model_dump(mode="json")["topology"] == {"node[1-2]": "r1"}


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ("racks.txt", "racks.txt cannot be read: No such file or directory"),
        ("wrong.txt", "wrong.txt: line 1 is 'nothing of that', and no `node: rack`"),
        ("{'node[2-1]': r1}", "'2-1' in 'node[2-1]' is no range of nodes"),
    ],
)
def test_faults_of_a_topology_are_told_at_its_line(tmp_path, topology, message):
    (tmp_path / "wrong.txt").write_text("nothing of that\n")
    with pytest.raises(InputError) as caught:
        read_sites(site(tmp_path, topology))
    (fault,) = caught.value.diagnostics
    assert fault.message.endswith(message)
    assert fault.mark.line == 5
