"""`nsw plan` of a site that does not answer prints the plan; that its scheduler was not asked is a warning."""


def test_a_plan_needs_no_answer_of_the_site(nsw, recipe, home):
    (home / "sites.yaml").write_text(
        "nsw: 1\nsites: {far: {scheduler: slurm, transport: {kind: openssh, host: 127.0.0.1, port: 9}, scratch: /tmp/x}}\n"
    )
    said = nsw("plan", recipe("{command: 'echo 1'}"), "-s", "far", exits=0)
    assert "1 case, 1 run, 1 job" in said.out
    assert (
        "warning: the scheduler of far gave no answer whether it would accept this job: 127.0.0.1 cannot be" in said.out
    )
