"""Programs in containers, with stand-ins for the runtimes that check their words and then start the program."""

import pytest

STAND_IN = r"""#!/bin/bash
# NAME: takes the options that nsw and the recipe give, no other, and starts the program where it is told to
binds=() given=() names= image= where=
fail() { echo "stand-in NAME: $*" >&2; exit 125; }
case NAME in
  apptainer | singularity) [ "$1" = exec ] || fail "no exec"; shift; bind=--bind pwd=--pwd ;;
  podman) [ "$1 $2 $3" = "run --rm --env-host" ] || fail "words $1 $2 $3"; shift 3; bind=--volume pwd=--workdir ;;
  shifter) bind=--volume pwd=--workdir ;;
  docker) [ "$1 $2" = "run --rm" ] || fail "words $1 $2"; shift 2; bind=--volume pwd=--workdir; names=yes ;;
  sarus) [ "$1" = run ] || fail "no run"; shift; bind=--mount pwd=--workdir ;;
  ch-run) bind=--bind pwd=--cd ;;
esac
while [ $# -gt 0 ]; do
  case $1 in
    --mount=type=bind,source=*) one=${1#*source=}; binds+=("${one/,destination=/:}") ;;
    $bind=*) binds+=("${1#*=}") ;;
    --env) [ "$names" = yes ] || fail "--env"; given+=("$2=${!2}"); shift ;;
    --env=INSIDE=* | --set-env=INSIDE=*) export "${1#*env=}" ;;
    $pwd=*) where=${1#*=} ;;
    --image=*) [ NAME = shifter ] || fail "$1"; image=${1#*=} ;;
    --wanted) wanted=yes ;;
    --init) [ NAME = docker ] || fail "$1" ;;
    -*) fail "unknown option $1" ;;
    *) break ;;
  esac
  shift
done
[ NAME = shifter ] || { image=$1; shift; }
[ "$image" = "/my image:1" ] || fail "image $image"
[ "$wanted" = yes ] || fail "the recipe's option is missing"
for bind in "${binds[@]}"; do
  [ "${bind%:*}" = "${bind#*:}" ] && [ -d "${bind%:*}" ] || fail "bind $bind"
done
printf '%s\n' "${binds[@]#*:}" >>"$SEEN"
cd / && cd "$where" || fail "$where"
[ NAME != ch-run ] || { [ "$1" = -- ] || fail "no --"; shift; }
[ "$names" != yes ] || exec env -i "PATH=$PATH" HOME=/ "INSIDE=$INSIDE" "${given[@]}" CONTAINER=NAME "$@"
CONTAINER=NAME exec "$@"
"""
RECIPE = """
nsw: 1
name: boxed
app:
  command: python3 prog.py {{ n }} 'a  b'
  files: [prog.py]
  env: {GIVEN: "x y"}
  container: {runtime: RUNTIME, image: "/my image:{{ n }}", options: [--wanted], env: {INSIDE: "i n"}}
matrix: {n: [1]}
passes: [baseline, host: {tool: cprofile}]
resources: {gpus: 0, time: 1m}
"""
PROGRAM = "import os, sys\nprint(os.environ['CONTAINER'], os.environ['GIVEN'], os.environ['INSIDE'], sys.argv[1:])\n"


@pytest.mark.parametrize(
    "runtime", ["apptainer", "singularity", "shifter", "podman", "docker", "sarus", "charliecloud"]
)
def test_the_program_runs_inside_with_its_files_its_folder_and_its_environment(road, runtime):
    tools = road.home / "bin"
    tools.mkdir()
    program = {"charliecloud": "ch-run"}.get(runtime, runtime)
    (tools / program).write_text(STAND_IN.replace("NAME", program))
    (tools / program).chmod(0o755)
    (road.home / "prog.py").write_text(PROGRAM)
    road.environment |= {"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin", "SEEN": str(road.home / "seen")}
    road.run(RECIPE.replace("RUNTIME", runtime), site="one", exits=0)
    wanted = f"{program} x y i n ['1', 'a  b']\n"
    assert road.output("n-1.baseline.r1") == wanted
    assert road.output("n-1.host.r1") == wanted
    assert (road.campaign / "reports/n-1.host.r1/host.pstats").exists()
    scratch = road.campaign / "scratch"
    home = scratch / "runs/n-1.baseline.r1/attempt-1"
    assert (road.home / "seen").read_text().splitlines()[:2] == [str(home), str(scratch / "app")]
