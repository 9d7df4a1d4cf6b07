"""What a plan will probably cost, by earlier campaigns of the recipe, and what is compared with confirm_above."""

import json
import re

from .test_exit_codes import refused


def cost(said):
    """At most and expected, of a plan as JSON."""
    plan = json.loads(said.out)
    return plan["node_hours_at_most"], plan["node_hours_expected"]


def test_without_an_earlier_campaign_the_most_counts(nsw, recipe):
    name = recipe("{command: 'true'}", "repeats: 100\n")
    shown = nsw("plan", name, "-s", "dear")
    assert "at most 3.33 node-hours" in shown.out
    assert "expected" not in shown.out
    assert cost(nsw("plan", name, "-s", "dear", "--json")) == (10 / 3, None)
    refused(nsw("run", name, "-s", "dear"), "this costs up to 3.33 node-hours, more than the site's confirm_above (1)")


def test_what_earlier_campaigns_took_counts_where_there_are_any(nsw, recipe):
    name = recipe("{command: 'true'}")
    assert nsw("run", name, "-s", "dear", "--yes").code == 0
    name = recipe("{command: 'true'}", "repeats: 100\n")
    shown = nsw("plan", name, "-s", "dear").out
    assert "at most 3.33 node-hours" in shown
    assert re.search(r"expected: 0\.0\d node-hours, as earlier campaigns of this recipe took", shown)
    most, expected = cost(nsw("plan", name, "-s", "dear", "--json"))
    assert 0 < expected < 1 < most
    assert nsw("run", name, "-s", "dear").code == 0


def test_what_no_earlier_campaign_did_counts_with_its_limit(nsw, recipe):
    app = "{command: 'true {{ n }}'}"
    assert nsw("run", recipe(app, "matrix: {n: [1]}\n"), "-s", "dear", "--yes").code == 0
    name = recipe(app, "matrix: {n: {range: [1, 100]}}\n")
    most, expected = cost(nsw("plan", name, "-s", "dear", "--json"))
    assert 99 / 60 < expected < most
    refused(nsw("run", name, "-s", "dear"), "this will probably cost 1.65 node-hours")
    assert nsw("run", recipe(app, "matrix: {n: {range: [1, 100]}}\n"), "-s", "here").code == 0
    # of another site nothing is known
    assert cost(nsw("plan", name, "-s", "dear", "--json"))[1] == expected
    found = json.loads(nsw("plan", name, "-s", "here", "--case", "n=1", "--json").out)
    assert found["node_hours_expected"] < found["node_hours_at_most"]


def test_a_failed_run_and_a_damaged_campaign_tell_nothing(nsw, recipe, failing):
    name = recipe("{command: 'exit {{ n }}'}", "matrix: {n: [0, 3]}\n")
    most, expected = cost(nsw("plan", name, "-s", "here", "--json"))
    assert 1 / 60 < expected < most
    (failing / "campaign.db").write_bytes(b"no database at all, and long enough for a header" * 20)
    assert cost(nsw("plan", name, "-s", "here", "--json"))[1] is None
