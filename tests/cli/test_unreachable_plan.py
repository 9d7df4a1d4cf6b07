"""`nsw plan` of a site that does not answer prints the plan; that its scheduler was not asked is a warning."""

from nsw.campaign.planning import Prospect, prospect_warnings


def test_a_plan_needs_no_answer_of_the_site(nsw, recipe, home):
    (home / "sites.yaml").write_text(
        "nsw: 1\nsites: {far: {scheduler: slurm, transport: {kind: openssh, host: 127.0.0.1, port: 9}, scratch: /tmp/x}}\n"
    )
    said = nsw("plan", recipe("{command: 'echo 1'}"), "-s", "far", exits=0)
    assert "1 case, 1 run, 1 job" in said.out
    assert (
        "warning: the scheduler of far gave no answer whether it would accept this job: 127.0.0.1 cannot be" in said.out
    )


def test_the_same_words_of_several_jobs_are_one_warning():
    prospects = [Prospect((f"j{n}",), untold="no answer") for n in range(3)] + [Prospect(("j3",), waits="a node")]
    assert prospect_warnings(prospects) == ["j0, j1, j2: no answer", "j3: a node"]
