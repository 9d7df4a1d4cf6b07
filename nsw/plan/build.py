"""A recipe and a site -> a plan: every run with its command, packed in jobs; all faults at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.errors import Diagnostic, InputError, Mark, did_you_mean
from nsw.launchers import model as launcher_model
from nsw.launchers.model import Launch, Layout, LayoutError, PlaceFacts, binding_option, launch_notes
from nsw.launchers.srun import check_slurm_line_against_layout
from nsw.metrics import Chip, find_chip, find_metric_faults, unsupported_reason
from nsw.metrics.catalogue import chips_by_name
from nsw.metrics.requests import Tool, as_tool, default_counters_tool
from nsw.plan import counters
from nsw.plan import jobs as job_parts
from nsw.plan.command import PRIVATE, RECORD_ENVIRONMENT, Box, command_words
from nsw.plan.jobs import WARM_UP, Blocks, Resolver, build_job, faults_at, make_blocks, pack_jobs, runs_per_node
from nsw.plan.layout import Demand, compute_layout
from nsw.plan.model import APP, OF_BEFORE, Absent, Job, Part, Plan, Resources, Run, RunSecrets, SiteFacts, around_s
from nsw.plan.passes import CaseProgram, profile_pass
from nsw.profilers import Profiled
from nsw.profilers.model import SCRIPTS
from nsw.recipe.fields import Secret, parse_whole_number
from nsw.recipe.matrix import BEFORE, SIDE, Case
from nsw.recipe.passes import AUTO, CountersPass, Pass, SecondStage
from nsw.recipe.program import is_relative_image, source_path
from nsw.recipe.units import Fault, as_text, format_clock, parse_duration
from nsw.site.model import FILL, Site
from nsw.site.names import LOCAL
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.model import Recipe
    from nsw.site.load import LoadedSite

_MOST_RUNS: Final = 200_000  # that are planned
_MOST_REASONS = 3  # in one line, where nothing of a recipe can be done


def build_plan(
    loaded: LoadedRecipe, loaded_site: LoadedSite, facts: SiteFacts, *, fit: bool = False, part: Part | None = None
) -> Plan:
    """Plan a recipe on a site: all of it, or a part that is added to a campaign.

    Args:
        loaded: The recipe.
        loaded_site: The site.
        facts: What the site has.
        fit: Whether cases that the site cannot hold are left out, with the reason.
        part: What is added to a campaign; None: all of the recipe.

    Raises:
        InputError: With every fault of the recipe that shows on this site.
    """
    cases = loaded.cases
    if (too_many := _too_many_runs(loaded)) is not None:
        raise InputError([too_many])
    faults = [*_axis_faults(loaded), *faults_on_site(loaded, loaded_site, facts)]
    faults += counters.unknown_sources(loaded)
    builder = _Builder(loaded, loaded_site, facts, fit=fit, part=part)
    runs: list[Run] = []
    for case in cases:
        runs += [run for run in builder.runs_of(case) if part is None or run.id in part.runs]
    apps = {run.app for run in runs}
    built = part.built if part else ()
    faults += [*builder.faults, *builder.case_faults(), *builder.gpu_faults()]
    if not faults and not runs:
        faults.append(builder.no_runs_fault())
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    recipe, site = loaded.recipe, loaded_site.site
    name = f"{recipe.name}-{part.number}" if part else recipe.name
    sentences = loaded.before.notes if loaded.before else ()
    node_gpus = (facts.gpus_per_node or 0) if site.whole_nodes else 0
    per_task = None if site.limits.runs_per_job == FILL else int(site.limits.runs_per_job)
    blocks = _make_blocks(loaded, loaded_site, name, runs)
    in_order = [job for group in blocks for job in group.jobs]
    not_interleaved = [run for run in runs if not _is_interleaved(recipe, run.pass_kind)]
    jobs = pack_jobs(name, not_interleaved, runs_per_task=per_task,
                max_array=site.limits.max_array, longest_s=site.limits.max_walltime, node_gpus=node_gpus,
                around_s=around_s(site.limits.grace), first=len(in_order) + 1)  # fmt: skip
    reducing = job_parts.reduction_jobs(name, runs, site)
    return Plan(
        name=recipe.name,
        site=site.name,
        cases=tuple(case.id for case in cases),
        jobs=(*in_order, *jobs),
        absent=tuple(Absent(subject, reason, tuple(ids)) for (subject, reason), ids in builder.absent.items()),
        note=facts.note,
        notes=(
            *builder.added_passes({run.pass_name for run in runs}),
            *builder.notes,
            *filter(None, [_separate_warm_up_note(recipe, site, per_task)]),
            *dict.fromkeys(map(str, blocks)),
            *sentences,
        ),
        files=builder.files(recipe.app.files),
        before=builder.files(recipe.app.before),
        setup=() if facts.replay else tuple(recipe.app.setup),
        modules=() if facts.replay else tuple(site.modules),
        builds=tuple(job for app, job in builder.builds.items() if app in apps and app not in built),
        reductions=reducing,
        marks=resource_marks(loaded, loaded_site, gpus=max((run.resources.gpus for run in runs), default=0)),
        secrets=tuple(builder.secrets),
        replay=facts.replay is not None,
        share=site.share,
        node_gpus=node_gpus,
    )


def _ids_and_repeats(recipe: Recipe, pass_: Pass, case: str) -> list[tuple[str, int]]:
    """The id and the repeat (from 1; WARM_UP) of each run of a pass, in order.

    Args:
        recipe: The recipe.
        pass_: The pass.
        case: The case's id.
    """
    begin = f"{case}.{pass_.name}"
    warm = [(f"{begin}.w{n}", WARM_UP) for n in range(1, _warm_up_count(recipe, pass_) + 1)]
    return [*warm, *((f"{begin}.r{n}", n) for n in range(1, (pass_.repeats or recipe.repeats) + 1))]


def _warm_up_count(recipe: Recipe, pass_: Pass) -> int:
    """How many warm-up runs a pass has; counters, for which each kernel is replayed, have only their own."""
    if pass_.warmup is not None:
        return pass_.warmup
    return 0 if isinstance(pass_, CountersPass) else recipe.warmup


def _is_interleaved(recipe: Recipe, kind: str) -> bool:
    """Whether runs of passes of a kind are done in blocks: those of the program alone, which are timed."""
    return recipe.interleave is not None and kind == "baseline"


def _too_many_runs(loaded: LoadedRecipe) -> Diagnostic | None:
    """The fault of a recipe that asks for more runs than are planned; found before any of them is made."""
    recipe = loaded.recipe
    a_case = sum((pass_.repeats or recipe.repeats) + _warm_up_count(recipe, pass_) for pass_ in recipe.passes)
    if len(loaded.cases) * a_case <= _MOST_RUNS:
        return None
    key_path = ("repeats",) if loaded.document.node(("repeats",)) is not None else ("passes",)
    message = f"cases, passes and repeats make more than {_MOST_RUNS:,} runs"
    return loaded.document.diagnostic(key_path, message, hint="`--case` and `--pass` choose some; repeats: 3 is usual")


def _separate_warm_up_note(recipe: Recipe, site: Site, per_task: int | None) -> str | None:
    """A sentence where warm-ups may not warm what the repeats use; None where they do.

    Args:
        recipe: The recipe.
        site: The site.
        per_task: How many runs follow each other in one task; None: as many as fit.
    """
    warm_up_count = max(
        (_warm_up_count(recipe, pass_) for pass_ in recipe.passes if not _is_interleaved(recipe, pass_.kind)), default=0
    )
    one_at_a_time = site.scheduler == "local" and site.limits.max_in_flight == 1
    if not warm_up_count or one_at_a_time or per_task is None or per_task > warm_up_count:
        return None
    return (
        "warm-up runs and repeats are jobs of their own here: they may run on different nodes, or at the same time"
        " (`limits.runs_per_job` of the site puts several runs into one job)"
    )


def _make_blocks(loaded: LoadedRecipe, loaded_site: LoadedSite, name: str, runs: list[Run]) -> list[Blocks]:
    """The runs that the recipe wants in blocks.

    Raises:
        InputError: The site has no job that is long enough for one of them.
    """
    recipe, site = loaded.recipe, loaded_site.site
    if recipe.interleave is None:
        return []
    timed = [run for run in runs if _is_interleaved(recipe, run.pass_kind)]
    longest = site.limits.max_walltime
    blocks = make_blocks(name, timed, recipe.interleave.seed, longest_s=longest, around_s=around_s(site.limits.grace))
    longest_block = max((job.walltime_s for group in blocks for job in group.jobs), default=0)
    if longest is not None and longest_block > longest:
        allowed = f"site {site.name} allows only {format_clock(longest)}"
        message = f"a block needs a job of {format_clock(longest_block)}, but {allowed}"
        hint = "runs of a block are never in two jobs: fewer cases (`--case`), or a shorter resources.time"
        raise InputError([loaded.document.diagnostic(("interleave",), message, hint=hint)])
    return blocks


class _Builder:
    """Makes runs case by case and gathers what is wrong or absent on the way."""

    def __init__(
        self, loaded: LoadedRecipe, loaded_site: LoadedSite, facts: SiteFacts, *, fit: bool, part: Part | None
    ) -> None:
        self._fit = fit
        self._base = part.app if part else APP
        self._time_s = part.time_s if part else None
        self.faults: list[Diagnostic] = []
        self._of_cases: dict[tuple[tuple[str | int, ...], str, str | None], list[str]] = {}
        self.absent: dict[tuple[str, str], list[str]] = {}
        self.builds: dict[str, Job] = {}
        self.secrets: list[dict[str, Secret]] = []
        self.notes: dict[str, None] = {}
        self._too_many = (0, 1)
        self._loaded = loaded
        self._loaded_site = loaded_site
        self._facts = facts
        site = loaded_site.site
        site_values = {"name": site.name, "python": site.python, "account": site.account}
        self._site_values = {key: value for key, value in site_values.items() if value is not None}
        self._resolver = Resolver()
        self._chip = site.gpus.chip or facts.chip
        self._passes = tuple(loaded.recipe.passes) if facts.replay else counters.passes_of(loaded.recipe)

    def added_passes(self, carried_out: set[str]) -> list[str]:
        """A sentence for each timeline that the recipe does not list, of those that are carried out."""
        unlisted = self._passes[len(self._loaded.recipe.passes) :]
        added = [pass_.name for pass_ in unlisted if not isinstance(pass_, SecondStage)]
        sentence = "pass {} is added, a run a case: its timeline shows which kernels cost most"
        return [sentence.format(name) for name in added if name in carried_out]

    def runs_of(self, case: Case) -> list[Run]:
        """All runs of one case, pass by pass, repeat by repeat."""
        recipe = self._loaded.recipe
        values = {**case.params, "case": case.id, "site": self._site_values}
        try:
            program = self._case_program(case, values)
            limits = [
                self._with_pass_time(number, pass_, program.needs, values) for number, pass_ in enumerate(self._passes)
            ]
            commands = [self._put_under_profiler(number, pass_, program) for number, pass_ in enumerate(self._passes)]
        except job_parts.UnresolvedError as fault:
            self._of_cases.setdefault((fault.path, fault.message, fault.hint), []).append(case.id)
            return []
        if self._fit and (too_many := self._too_many_gpus_reason(program.needs)):
            names = [id_ for pass_ in self._passes for id_, _ in _ids_and_repeats(recipe, pass_, case.id)]
            self.absent.setdefault((f"case {case.id}", too_many), []).extend(names)
            return []
        self._check_gpus(program.needs)
        self.notes |= dict.fromkeys(launch_notes(program.launch))
        impossible = {pass_.name: done.impossible for pass_, (_, done) in zip(self._passes, commands, strict=True)}
        runs: list[Run] = []
        absent: set[str] = set()
        for pass_, limit, (tool, done) in zip(self._passes, limits, commands, strict=True):
            if isinstance(pass_, SecondStage) and (tool != "ncu" or pass_.source in absent):
                continue
            key_path = ("resources", "time") if pass_.time is None else ("passes",)
            self._check_time(limit, key_path, alone=_is_interleaved(recipe, pass_.kind))
            source = None if self._facts.replay else counters.kernel_source(pass_, self._passes)
            reason = done.impossible
            if reason is None and source is not None and impossible[source] is not None:
                reason = f"pass {source}, which chooses its kernels, is not here either: {impossible[source]}"
            if reason is not None:
                absent.add(pass_.name)
                names = [id_ for id_, _ in _ids_and_repeats(recipe, pass_, case.id)]
                self.absent.setdefault((f"pass {pass_.name}", reason), []).extend(names)
                continue
            if isinstance(pass_, CountersPass):
                self.notes |= dict.fromkeys(counters.counters_notes(pass_, tool, self._chip))
            self.notes |= dict.fromkeys(done.notes)
            run = self._draft_run(program, pass_, tool, done)
            run = replace(run, resources=limit, needs=f"{case.id}.{source}" if source else "")
            runs += self._repeat_run(run, pass_)
        return runs

    def _case_program(self, case: Case, values: Mapping[str, Any]) -> CaseProgram:
        site = self._loaded_site.site
        needs = self._resolver.resources(self._loaded.recipe.resources, site, values)
        env, secrets = self._environment_and_secret(values)
        words = self._program_words(values)
        launch = self._make_launch(values, needs)
        needs = replace(needs, tasks=launch.layout.tasks, one_a_node=launch.launcher.spawns)
        app = self._app_folder(case, needs, values)
        box = self._make_box(app, values, secrets)
        return CaseProgram(
            case, needs, env=env, secrets=secrets, words=words, launch=launch, app=app, box=box,
            checks=self._check_functions(values),
        )  # fmt: skip

    def _draft_run(self, program: CaseProgram, pass_: Any, tool: str | None, done: Profiled) -> Run:
        words = [*done.command, *chain(*done.after)]
        return Run(
            id="",
            case_id=program.case.id,
            params=program.case.params,
            pass_name=pass_.name,
            pass_kind=pass_.kind,
            tool=tool,
            repeat=1,
            command=done.command,
            env=program.env,
            resources=program.needs,
            reports=done.reports,
            after=done.after,
            app=program.app,
            secrets=self._run_secrets(program.secrets, tool),
            reduction=done.reduction,
            layout=program.launch.layout,
            before=(
                *self._sampler_command(pass_),
                *done.before,
                *launcher_model.shell_functions_setting_variables(words),
            ),
            checks=program.checks,
        )

    def _sampler_command(self, pass_: Any) -> tuple[str, ...]:
        """What samples the conditions of a run; a pass of counters replays kernels at clocks of its own."""
        is_sampled = self._loaded.recipe.conditions and pass_.kind != "counters" and self._facts.replay is None
        return ("nsw_conditions",) if is_sampled else ()

    def _repeat_run(self, run: Run, pass_: Any) -> Iterator[Run]:
        for id_, repeat in _ids_and_repeats(self._loaded.recipe, pass_, run.case_id):
            # of a warm-up nothing is read, so nothing is reduced
            reports = () if repeat == WARM_UP and run.reduction else run.reports
            checks = () if repeat == WARM_UP else run.checks
            yield replace(run, id=id_, repeat=repeat, reports=reports, checks=checks)

    def files(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Files that the recipe names: where they are, their name beside the program."""
        paths = [source_path(self._loaded.folder, name) for name in names]
        return tuple((str(path), path.name) for path in paths)

    def _app_folder(self, case: Case, needs: Resources, values: Mapping[str, Any]) -> str:
        """The folder of the application that a case uses; a build step is done once for each."""
        app = self._loaded.recipe.app
        base = f"{self._base}{OF_BEFORE}" if app.before and case.params.get(SIDE) == BEFORE else self._base
        step = app.build
        if step is None or self._facts.replay is not None:
            return base
        name, site = self._loaded.recipe.name, self._loaded_site.site
        folder, job = build_job(name, step, case, needs, values, self._resolver, site, base)
        self.builds.setdefault(folder, job)
        return folder

    def _program_words(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        command = self._loaded.recipe.app.command
        with faults_at("app", "command"):
            if isinstance(command, str):
                return command_words(self._resolver.parse(command), values)
            return tuple(as_text(self._resolver.value(word, values)) for word in command)

    def _check_functions(self, values: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
        """What the job writes down for the recipe's checks, each under the recipe's own text of it."""
        functions: list[tuple[str, ...]] = []
        for number, entry in enumerate(self._loaded.recipe.check):
            with faults_at("check", number, entry.kind):
                if entry.file is not None:
                    path = as_text(self._resolver.value(entry.file, values))
                    functions.append(("nsw_check_file", entry.file, path, *(["sum"] if entry.sha256 else [])))
                elif entry.command is not None:
                    command = command_words(self._resolver.parse(entry.command), values)
                    functions.append(("nsw_check_command", entry.command, *command))
        return tuple(functions)

    def _environment_and_secret(self, values: Mapping[str, Any]) -> tuple[dict[str, str], int]:
        """The environment of a case's runs, and which of the plan's `secrets` belongs to it (from 1; 0: none)."""
        variables = dict(self._loaded_site.site.env)
        for name, value in self._loaded.recipe.app.env.items():
            with faults_at("app", "env", name):
                if not isinstance(value, Secret):
                    variables[name] = as_text(self._resolver.value(value, values))
                elif value.from_env is not None:
                    variables[name] = value
                else:
                    variables[name] = self._evaluate_secret(value.value, values)
        env = {name: value for name, value in variables.items() if not isinstance(value, Secret)}
        secret = {name: value for name, value in variables.items() if isinstance(value, Secret)}
        if not secret or self._facts.replay is not None:
            return env, 0
        if secret not in self.secrets:
            self.secrets.append(secret)
        return env, self.secrets.index(secret) + 1

    def _evaluate_secret(self, text: str, values: Mapping[str, Any]) -> Secret:
        try:
            return Secret(as_text(self._resolver.value(text, values)))
        except Fault:  # whose message repeats the text
            raise Fault("this cannot be computed, and is not shown because it is secret") from None

    def _run_secrets(self, number: int, tool: str | None) -> RunSecrets | None:
        if not number:
            return None
        secrets = self.secrets[number - 1]
        if tool not in RECORD_ENVIRONMENT:
            return RunSecrets(number, tuple(secrets))
        sources = (secret.from_env for secret in secrets.values() if secret.from_env is not None)
        return RunSecrets(number, tuple(secrets), tuple(dict.fromkeys((*secrets, *sources))))

    def _make_launch(self, values: Mapping[str, Any], needs: Resources) -> Launch:

        site, requested = self._loaded_site.site, self._loaded.recipe.resources
        launcher = self._loaded.recipe.app.launcher
        with faults_at("app", "launcher"):
            process_count = self._resolver.value(launcher.processes, values)
            prefix = () if launcher.prefix is None else command_words(self._resolver.parse(launcher.prefix), values)
            options = tuple(as_text(self._resolver.value(option, values)) for option in launcher.options)
            count = None if process_count is None else parse_whole_number(process_count, 1)
        with faults_at("resources", "tasks_per_node"):
            each = self._resolver.value(requested.tasks_per_node, values)
            each = None if each is None else parse_whole_number(each, 1)
        if self._facts.replay is not None:  # one process prints what was recorded
            return Launch(Layout(tasks=needs.tasks, nodes=needs.nodes))
        mpi = site.mpi or self._facts.mpi
        with faults_at("resources"):
            layout = compute_layout(
                Demand(
                    kind=launcher.kind,
                    nodes=needs.nodes,
                    processes=count or launcher_model.requested_process_count(launcher.kind, options),
                    tasks_per_node=each,
                    gpus=needs.gpus,
                    gpus_written=requested.gpus is not None,
                    cpus=needs.cpus_per_task,
                    sees=launcher.gpus,
                    share_gpus=launcher.share_gpus,
                    node_cpus=site.cpus_per_node,
                    order=tuple(site.gpus.order),
                    chip=self._chip,
                    one_machine=site.scheduler == LOCAL,
                    cyclic=launcher_model.options_ask_for_cyclic_ranks(launcher.kind, options, mpi),
                    bound=binding_option(launcher.kind, options),
                    site_gpus=self._facts.gpus_per_node,
                )
            )
            if site.scheduler == "slurm":
                self._check_slurm(layout, needs)
        with faults_at("app", "launcher"):
            starter = site.node_launcher
            node_values = {**values, "nodes": needs.nodes}
            node_words = () if starter is None else command_words(self._resolver.parse(starter), node_values)
            shared = site.whole_nodes and site.limits.runs_per_job != 1
            place_facts = PlaceFacts(
                scheduler=site.scheduler,
                mpi=mpi,
                node_launcher=node_words,
                gres=needs.gres,
                steps_share_nodes=shared and runs_per_node(needs, self._facts.gpus_per_node or 0) > 1,
            )
            return Launch(layout, place_facts, options, prefix)

    def _check_slurm(self, layout: Layout, needs: Resources) -> None:
        """See that what the recipe and the site write in Slurm's own words agrees with the layout.

        Raises:
            LayoutError: It does not.
        """
        asked, site = self._loaded.recipe.resources, self._loaded_site.site
        for number, line in enumerate(needs.extra[len(site.extra) :]):
            check_slurm_line_against_layout(line, layout, ("resources", "extra", number))
        for line in site.extra:
            check_slurm_line_against_layout(line, layout, ("resources",), is_site_line=True)
        count = None if needs.gres is None or asked.gpus is None else launcher_model.gpu_count_in_gres(needs.gres)
        if count is None or needs.gpus % needs.nodes:
            return
        planned = needs.gpus // needs.nodes
        if asked.gres is not None and count != planned:
            raise LayoutError(
                ("resources", "gres"),
                f"gres {needs.gres} asks for {count} GPUs a node, and gpus for {planned}",
                f"let gres ask for {planned}, or leave it out: nsw asks for what gpus says",
            )
        if asked.gres is None and count < planned:  # a whole node's may be more than a run uses
            raise LayoutError(
                ("resources", "gpus"),
                f"{planned} GPUs on each node, and site {site.name} asks Slurm for {count} (gres: {needs.gres})",
                "let the site's gres take the number from the recipe, such as `gres: 'gpu:{{ gpus }}'`",
            )

    def _with_pass_time(self, number: int, pass_: Any, needs: Resources, values: Mapping[str, Any]) -> Resources:
        """What a pass needs: the run's own, with the pass's time."""
        if self._time_s is not None:
            return replace(needs, time_s=self._time_s)
        if pass_.time is None:
            return needs
        with faults_at("passes", number, pass_.kind, "time"):
            time = self._resolver.value(pass_.time, values)
            return replace(needs, time_s=int(parse_duration(time) if isinstance(time, str) else time))

    def _make_box(self, app: str, values: Mapping[str, Any], secret: int) -> Box | None:
        container = self._loaded.recipe.app.container
        if container is None:
            return None
        with faults_at("app", "container", "image"):
            image = as_text(self._resolver.value(container.image, values))
            app_keys = self._loaded.recipe.app
            sent = {name.rpartition("/")[2] for name in app_keys.files}
            is_sent = image.removeprefix("./").partition("/")[0] in sent or app_keys.setup or app_keys.build
            if is_relative_image(container.runtime, image) and not is_sent:
                raise Fault(
                    f"the image {image} is a file without its path: each run starts in a folder of its own and will"
                    " not find it",
                    hint="write its absolute path on the site, such as /home/me/image.sif or $HOME/image.sif",
                )
        with faults_at("app", "container", "options"):
            options = tuple(as_text(self._resolver.value(option, values)) for option in container.options)
        mounts = []
        for number, mount in enumerate(container.mounts):
            with faults_at("app", "container", "mounts", number):
                mounts.append(as_text(self._resolver.value(mount, values)))
        env = []
        for name, value in container.env.items():
            with faults_at("app", "container", "env", name):
                env.append((name, as_text(self._resolver.value(value, values))))
        recipe = self._loaded.recipe.app
        folders = ([app] if recipe.files or recipe.build else []) + ([PRIVATE] if secret else [])
        is_inside, seen = container.profiler == "inside", (*folders, SCRIPTS)
        return Box(container.runtime, image, options, is_inside, seen, tuple(mounts), tuple(env), container.gpus)

    def _put_under_profiler(self, number: int, pass_: Any, program: CaseProgram) -> tuple[str | None, Profiled]:
        if self._facts.replay is not None:
            command = self._facts.replay(program.case.params, pass_.kind)
            if command is None:
                return None, Profiled(impossible="was not recorded; the demo replays alexnet_scaling under nsys")
            return self._facts.replayed_tool, Profiled(command, self._facts.replayed_reports)
        recipe, site = self._loaded.recipe, self._loaded_site.site
        with faults_at("passes", number, pass_.kind, "ranks"):
            return profile_pass(
                pass_, program, recipe, site, self._facts, chooses=counters.chooses_kernels(pass_, self._passes)
            )

    def _check_time(self, limit: Resources, key_path: tuple[str | int, ...], *, alone: bool) -> None:
        """Remember a pass whose jobs would be too long; of blocks, that are looked at later, a single run is meant."""
        limits = self._loaded_site.site.limits
        runs = 1 if alone or limits.runs_per_job == FILL else int(limits.runs_per_job)
        if self._loaded_site.site.whole_nodes:
            runs = -(-runs // runs_per_node(limit, self._facts.gpus_per_node or 0))
        around = around_s(limits.grace)
        needed = limit.time_s * runs + around
        if limits.max_walltime is None or needed <= limits.max_walltime:
            return
        several = f" for {runs} runs of {format_clock(limit.time_s)}" if runs > 1 else ""
        name = self._loaded_site.site.name
        self.faults.append(
            self._loaded.document.diagnostic(
                key_path,
                f"a job would need {format_clock(needed)}{several}, but site {name} allows"
                f" {format_clock(limits.max_walltime)}",
                hint=f"a job needs {around} s in addition to its runs; the limit is the site's limits.max_walltime",
            )
        )

    def _too_many_gpus_reason(self, needs: Resources) -> str | None:
        """Why the site cannot hold a case; None when it can."""
        has = self._facts.gpus_per_node
        if has is None or needs.gpus <= has * needs.nodes:
            return None
        return self._too_many_gpus_message(needs.gpus, needs.nodes)

    def _too_many_gpus_message(self, gpus: int, nodes: int) -> str:
        site, has = self._loaded_site.site, self._facts.gpus_per_node
        key = f" (gpus.per_node: {has})" if has and site.gpus.per_node == has else ""
        each = f" on each of the {nodes} nodes" if nodes > 1 else " on a node" if key else ""
        return f"{gpus} GPU{'s' if gpus != 1 else ''} asked, but site {site.name} has {has or 'none'}{each}{key}"

    def _check_gpus(self, needs: Resources) -> None:
        """Remember the run that asks for most beyond what the site has; one error tells of all."""
        has = self._facts.gpus_per_node
        if has is not None and needs.gpus > max(has * needs.nodes, self._too_many[0]):
            self._too_many = (needs.gpus, needs.nodes)

    def case_faults(self) -> list[Diagnostic]:
        """What is wrong with cases; the same words of several cases once."""
        return [
            self._loaded.document.diagnostic(path, f"case {first_names(cases)}: {message}", hint=hint)
            for (path, message, hint), cases in self._of_cases.items()
        ]

    def gpu_faults(self) -> list[Diagnostic]:
        """The fault of asking for more GPUs than the site has, once."""
        max_gpus, nodes = self._too_many
        if not max_gpus:
            return []
        has = self._facts.gpus_per_node
        message = self._too_many_gpus_message(max_gpus, nodes)
        document = self._loaded.document
        if document.node(("resources", "gpus")) is None:
            message += ", and a recipe that does not say how many asks for 1"
            if nodes > 1:
                message += " on each node"
            hint = "write `resources: {gpus: 0}` if the program needs none"
        elif has:
            hint = "`--fit` skips the cases that the site cannot hold, `--set gpus=...` asks for others"
            if self._loaded_site.site.scheduler != LOCAL:
                hint = f"`nodes: {-(-max_gpus // has)}` in resources spreads them over nodes; {hint}"
        else:
            hint = "name a site with GPUs (`--site`), or use its CPUs: `resources: {gpus: 0}`, baseline and host passes"
        if demo := self._demo_hint():
            hint += f"; {demo}"
        return [document.diagnostic(("resources", "gpus"), message, hint=hint)]

    def no_runs_fault(self) -> Diagnostic:
        """The fault of a recipe of which no run can be done here, with the first reasons."""
        reasons = [f"{subject}: {reason}" for (subject, reason) in self.absent]
        omitted = [f"and {len(reasons) - _MOST_REASONS} more"] if reasons[_MOST_REASONS:] else []
        explanation = "; ".join([*reasons[:_MOST_REASONS], *omitted])
        return self._loaded.document.diagnostic(
            ("passes",),
            f"no run of this recipe is possible on site {self._loaded_site.site.name}: {explanation}",
            hint=self._demo_hint() if self._fit else None,
        )

    def _demo_hint(self) -> str | None:
        """What can be looked at without a GPU; None where this machine has one, or another is asked."""
        if self._facts.gpus_per_node or self._loaded_site.site.name != LOCAL:
            return None
        return "`nsw run alexnet_scaling --site demo` shows recorded results on a machine without a GPU"


def _axis_faults(loaded: LoadedRecipe) -> list[Diagnostic]:
    """Scaling is along a number."""
    scaling = loaded.recipe.report.scaling
    values = [case.params[scaling.axis] for case in loaded.cases] if scaling else []
    word = next((v for v in values if isinstance(v, bool) or not isinstance(v, int | float)), None)
    if word is None:
        return []
    hint = "report: compare: {parameter: ...} compares variants"
    return [
        loaded.document.diagnostic(
            ("report", "scaling", "axis"), f"scaling needs numbers; one value is {word!r}", hint=hint
        )
    ]


_RESOURCE_KEYS: Final = (
    "nodes", "gpus", "cpus_per_task", "memory", "time", "queue", "partition", "account", "qos", "gres", "reservation",
    "constraint", "extra",
)  # fmt: skip
# keys that may stand for the one that a scheduler names
_ALSO: Final = {"queue": ("partition",), "partition": ("queue",), "gres": ("gpus",)}
# what a node must have together: Slurm says only that no node has it
_TOGETHER: Final = ("gpus", "memory", "cpus_per_task")


_KeyLocation: TypeAlias = "tuple[LoadedRecipe | LoadedSite, tuple[str, ...]]"


def resource_marks(loaded: LoadedRecipe, loaded_site: LoadedSite, *, gpus: int) -> dict[str, Mark]:
    """The place of everything that was asked for, by the key that a refusal names; of what was not, where it belongs.

    Args:
        loaded: The recipe.
        loaded_site: The site.
        gpus: The most GPUs that a run asks for.
    """
    has_resources = loaded.document.node(("resources",)) is not None
    belongs: _KeyLocation | None = (loaded, ("resources",)) if has_resources else None
    locations = (
        (key, _find_key(loaded, loaded_site, _key_that_asks(loaded, loaded_site, key, gpus)) or belongs)
        for key in _RESOURCE_KEYS
    )
    return {key: mark for key, at in locations if at and (mark := at[0].document.mark(at[1]))}


def refusal_diagnostic(
    loaded: LoadedRecipe, loaded_site: LoadedSite, key: str | None, message: str, hint: str | None, *, gpus: int
) -> Diagnostic:
    """The refusal of a scheduler at the line that asks for it: the recipe's where it says so, else the site's.

    Args:
        loaded: The recipe.
        loaded_site: The site.
        key: The key that the refusal names.
        message: What the scheduler said.
        hint: What to do.
        gpus: How many GPUs the refused job asks for.
    """
    at = _find_key(loaded, loaded_site, _key_that_asks(loaded, loaded_site, key, gpus)) if key else None
    if at is not None:
        return at[0].document.diagnostic(at[1], message, hint=hint)
    if loaded.document.node(("resources",)) is not None:
        return loaded.document.diagnostic(("resources",), message, hint=hint, key=True)
    return Diagnostic(message, hint=hint)


def _key_that_asks(loaded: LoadedRecipe, loaded_site: LoadedSite, key: str, gpus: int) -> str:
    """Where no node has what is asked for: the first key that does ask, and that recipe or site names."""
    if key != _TOGETHER[0]:
        return key
    asking = _TOGETHER if gpus else _TOGETHER[1:]
    return next((name for name in asking if _find_key(loaded, loaded_site, name) is not None), key)


def _find_key(loaded: LoadedRecipe, loaded_site: LoadedSite, key: str) -> _KeyLocation | None:
    for document, path in ((loaded, ("resources",)), (loaded_site, ("sites", loaded_site.site.name))):
        for name in (key, *_ALSO.get(key, ())):
            if document.document.node((*path, name)) is not None:
                return document, (*path, name)
    return None


def faults_on_site(loaded: LoadedRecipe, loaded_site: LoadedSite, facts: SiteFacts) -> list[Diagnostic]:
    """The faults of all counters passes on the chip that the site names, else on the one found there; none without.

    A chip that nsw does not know is a fault where another name is near it; else it is taken for a new one.

    Args:
        loaded: The recipe.
        loaded_site: The site.
        facts: What the site has.
    """
    chip_name = loaded_site.site.gpus.chip
    chip = find_chip(chip_name or facts.chip)
    if chip is None:
        hint = did_you_mean(str(chip_name).lower(), chips_by_name()) if chip_name else None
        key_path = ("sites", loaded_site.site.name, "gpus", "chip")
        return [loaded_site.document.diagnostic(key_path, f"there is no chip {chip_name}", hint=hint)] if hint else []
    if not any(pass_.kind == "counters" for pass_ in loaded.recipe.passes):
        return []
    return list(metric_faults(loaded, chip, queried_names=facts.ncu_names(chip)))


def metric_faults(
    loaded: LoadedRecipe,
    chip: Chip,
    versions: dict[Tool, str] | None = None,
    queried_names: Collection[str] | None = None,
) -> Iterator[Diagnostic]:
    """The faults of all counters passes on a chip.

    Args:
        loaded: The recipe.
        chip: The chip that the counters are of.
        versions: The versions of the site's tools, where they are known.
        queried_names: The base names that the site's `ncu --query-metrics --chip` lists, instead of the shipped ones.
    """
    for number, pass_ in enumerate(loaded.recipe.passes):
        if pass_.kind != "counters":
            continue
        tool = default_counters_tool(chip) if pass_.tool == AUTO else as_tool(pass_.tool)
        reason = unsupported_reason(tool, chip, (versions or {}).get(tool))
        if reason is not None:
            key_path = ("passes", number, "counters", *(() if pass_.tool == AUTO else ("tool",)))
            yield loaded.document.diagnostic(key_path, reason)
            continue
        for fault in find_metric_faults(pass_.metrics, chip, tool, site_names=queried_names, replay=pass_.replay):
            path = ("passes", number, "counters", "metrics", fault.index)
            yield loaded.document.diagnostic(path, fault.message, hint=fault.hint)
