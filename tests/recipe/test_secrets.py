"""Which environment variables are secret, by name or by mark, and how they are written down."""

import contextlib
import subprocess
import sys

import jsonschema
import pytest

from nsw.campaign.planning import make_plan
from nsw.errors import InputError, UsageError
from nsw.recipe.document import parse
from nsw.recipe.fields import Secret
from nsw.recipe.load import Overrides, load_recipe_text
from nsw.recipe.model import recipe_schema
from nsw.recipe.secrets import holds_secret, looks_secret, named_secrets, secret_parts
from nsw.site.load import read_sites
from tests.guard import ends

RECIPE = "nsw: 1\nname: t\nmatrix: {n: [1]}\napp:\n  command: echo {{ n }}\n  env:\n"


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN", "HF_TOKEN", "hf_token", "GITHUB_TOKEN_2", "hfToken", "TOKEN2", "MY_SECRET", "CLIENT_SECRETS", "PASSWORD",
        "DB_PASSWD", "WANDB_API_KEY", "WANDB_APIKEY", "apiKey", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
        "SSH_PRIVATE_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "VAULT_CREDENTIAL", "GPG_PASSPHRASE", "SERVICE_JWT",
        "DB_PASS", "PGPASS", "MYSQL_PWD", "GITHUB_PAT", "REDIS_AUTH", "S3_CREDS", "NGC_CLI_KEY", "WANDB_KEY", "COOKIE",
        "SSHPASS", "PGPASSWORD", "HFTOKEN", "OPENAI_KEY", "ANTHROPIC_KEY", "GEMINI_KEY", "AZURE_STORAGE_KEY", "GPG_KEY",
        "LICENSE_KEY", "HF_KEY", "SSH_KEY", "SECRET_KEY", "SECRET_KEY_BASE", "CLIENT_KEY", "ACCOUNT_KEY", "API_KEY_OPENAI",
        "SLACK_WEBHOOK_URL", "AZURE_BLOB_SAS", "HTTP_AUTHORIZATION", "STRIPE_KEY_2", "restic-password",
    ],
)  # fmt: skip
def test_a_name_with_a_part_that_says_so_is_secret(name):
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "KEYBOARD", "MONKEY", "SORT_KEY", "KEY", "API", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "TOKENIZER", "SECRETARY",
        "PASSES", "PWD", "OMP_NUM_THREADS", "PATH", "CUDA_VISIBLE_DEVICES", "COMPASS", "CASSETTE", "API_URL_KEY",
        "OLDPWD", "PASS", "AUTH", "SSH_AUTH_SOCK", "PATTERN", "XAUTHORITY", "PRIMARY_KEY", "PARTITION_KEY", "FOREIGN_KEY",
        "cacheKey", "PUBLIC_KEY", "NUM_KEYS", "num_key_value_heads", "text_key", "KEYS", "KEYMAP", "HOTKEY", "LICENSE", "SAS",
        "time_per_token", "time_to_first_token", "EOS_TOKEN",
    ],
)  # fmt: skip
def test_a_name_that_only_holds_the_letters_is_not(name):
    assert not looks_secret(name)


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("postgres://user:password@host/db", True), ("redis://:password@host:6379/0", True), ("https://u:p@h", True),
        ("mysql+pymysql://u:{{ site.account }}@h", True), ("--dsn=amqp://u:p%40@h/vhost --fast", True),
        ("a://u:p@ss@h", True), ("https://host:8080/path@2", False), ("ssh://git@host/x", False), ("http://proxy:3128", False),
        ("u:p@h", False), ("https://host/?a:b@c", False), ("a://u:@h", False), ("", False),
        ("git+https://ghp_0123456789abcdefghijABCDEFGHIJ@github.com/a/b", True), ("https://group-of-us@dev.azure.com/a", False),
        ("https://host/ghp_0123456789abcdefghijABCDEFGHIJ@2", False), ("ssh://a-long-name-of-some-account@host/x", False),
    ],
)  # fmt: skip
def test_a_url_with_a_password_is_found(value, holds):
    assert holds_secret(value) is holds


@pytest.mark.parametrize(
    "value",
    [
        "://a:" + "{{}}" * 16, "://a:" + "{{}}" * 100_000, "://a:" + "{{" * 100_000, "{{://a:}}" * 50_000, "://a:" * 50_000,
        "https://" + "t" * 400_000, "a" * 400_000, "https://" * 50_000, "://a:{{" * 50_000 + "}}",
    ],
)  # fmt: skip
def test_the_search_for_a_password_ends_in_what_almost_holds_some(value):
    with ends():
        assert not holds_secret(value)
        assert not list(named_secrets(value))


def test_a_password_is_found_in_and_behind_expressions():
    assert holds_secret("a://u:{{ n }}b{{ m }}@h")
    assert holds_secret("a://u:{{n}} b://u:{{ c@d }}@h")
    assert list(secret_parts("{{ 'a://u:p@h' }}")) == ["p"]


HOOK = "T00000000/B00000000/SEKRET-1"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=SEKRET+1==;EndpointSuffix=core.windows.net", ["SEKRET+1=="]),
        ("--to AccountKey=SEKRET-1", ["SEKRET-1"]), ("Endpoint=sb://x/;SharedAccessKey=SEKRET-1", ["SEKRET-1"]),
        ("Server=h;User Id=me;Password=SEKRET-1;", ["SEKRET-1"]), ("AccountName=a", []), ("MyAccountKeys=a", []),
        ("https://a.blob.core.windows.net/c?sv=2020-08-04&sig=SEKRET%3D&se=1", ["SEKRET%3D"]),
        ("https://b.s3.amazonaws.com/f?X-Amz-Expires=9&X-Amz-Signature=SEKRET", ["SEKRET"]),
        ("https://h/?api_key=SEKRET#a", ["SEKRET"]), ("https://h/?n=1&access_token=SEKRET", ["SEKRET"]),
        ("https://h/?sigma=1&sort_key=2&design=3", []), ("design=1", []),
        (f"https://hooks.slack.com/services/{HOOK}", [HOOK]), ("curl -d @x hooks.slack.com/services/", []),
        ("https://discord.com/api/webhooks/1/SEKRET", ["1/SEKRET"]), ("https://discordapp.com/api/v10/webhooks/1/S", ["1/S"]),
        ("https://discord.com/channels/1/2", []), ("https://me.webhook.office.com/webhookb2/SEKRET", ["webhookb2/SEKRET"]),
        ("https://chat.googleapis.com/v1/spaces/A/messages?key=SEKRET", ["key=SEKRET"]),
        ("https://chat.googleapis.com/v1/spaces/A/messages?threadKey=1", []),
        ("https://api.telegram.org/bot1:SEKRET/sendMessage", ["1:SEKRET/sendMessage"]),
    ],
)  # fmt: skip
def test_keys_signatures_and_addresses_of_webhooks_in_a_value_are_found(value, parts):
    assert list(dict.fromkeys(secret_parts(value))) == parts
    found = env(f"N: '{value}'")["N"]
    assert found == (Secret(value) if parts else value)


def test_a_url_with_a_password_is_secret_and_is_written_and_read_as_others():
    lines = ("DATABASE_URL: postgres://u:p@h/db", "PROXY: {plain: 'http://u:p@h'}", "PAGE: http://h:80/")
    recipe = load_recipe_text(RECIPE + "".join(f"    {line}\n" for line in lines)).recipe
    assert recipe.app.env["DATABASE_URL"] == Secret("postgres://u:p@h/db")
    assert recipe.model_dump(mode="json", by_alias=True)["app"]["env"] == {
        "DATABASE_URL": {"secret": {"from_env": "DATABASE_URL"}},
        "PROXY": {"plain": "http://u:p@h"},
        "PAGE": "http://h:80/",
    }


FAULTY = f"{RECIPE}    N: '{{{{ nope }}}}'\n"
HIDDEN = "(not shown: a secret is written in "


@pytest.mark.parametrize(
    "line",
    [
        "HF_TOKEN: abc", "'HF_TOKEN' : abc", '{"HF_TOKEN":"abc"}', "X: {secret: abc}", "X: {secret: 'from_env'}", "REPO: https://" + 24 * "t" + "@h/a",
        "URL: postgres://me:abc@host/db", 'URL: "a://:x{{ n }}@h"', 'URL: "a://me:x\\\n      y@h"', 'URL: "https:\\/\\/me:x@h"',
        r'"HF\x5fTOKEN": abc', "? HF_TOKEN # a\n    : abc", "A: &a abc\n    HF_TOKEN: *a", "HF_TOKEN: [abc]",
        "A: https://h/?sig=abc", "A: 1  # HF_TOKEN: abc", "A: 1  # https://me:abc@h", "X: {secret: {from_env: a-b}}",
    ],
)  # fmt: skip
def test_of_a_file_with_a_secret_no_line_is_shown(line):
    text = FAULTY + (f"    {line}\n" if not line.startswith("{") else f"    <<: {line}\n")
    with pytest.raises(InputError) as refused:
        load_recipe_text(text, "r.yaml")
    for fault in refused.value.diagnostics:
        assert fault.source_line is None
        assert f"r.yaml:{fault.mark.line}:{fault.mark.column}: " in fault.render()
        assert f"  {fault.mark.line} | {HIDDEN}r.yaml)" in fault.render()
    assert "r.yaml:7:12: the expression uses 'nope', which no matrix defines" in refused.value.render()


@pytest.mark.parametrize(
    "line",
    [
        "HF_TOKEN: {secret: {from_env: OTHER}}", "HF_TOKEN: {secret: {from_env: 'OTHER'}}  # a comment", "X: {secret: {from_env: OTHER}}",
        "HF_TOKEN:\n      secret:\n        from_env: OTHER", '"HF_TOKEN": {"secret":{"from_env":"OTHER"}}', "HF_TOKEN: {plain: abc}",
        "A: --token=$HF_TOKEN", "A: abc", "A: https://h/?n=1", "SORT_KEY: abc", "KEYBOARD: abc", "MAX_TOKENS: 8",
    ],
)  # fmt: skip
def test_a_file_that_names_where_its_secrets_are_shows_its_lines(line):
    for text, shown in ((FAULTY, "    N: '{{ nope }}'"), (f"{RECIPE}    N: [\n", "    N: [")):
        with pytest.raises(InputError) as refused:
            load_recipe_text(text + f"    {line}\n", "r.yaml")
        assert refused.value.diagnostics[0].source_line == shown


def test_a_secret_that_cannot_be_computed_is_not_in_the_message(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(RECIPE + '    HF_TOKEN: "hf_abcdef{{ 1 / (n - 1) }}"\n')
    with pytest.raises(InputError) as told:
        make_plan(str(recipe), "local")
    (fault,) = told.value.diagnostics
    assert "hf_abcdef" not in f"{fault.message} {fault.hint} {fault.source_line}"
    assert "cannot be computed" in fault.message


def env(*lines):
    return load_recipe_text(RECIPE + "".join(f"    {line}\n" for line in lines)).recipe.app.env


def test_values_are_secret_by_name_or_by_mark_and_plain_by_mark():
    found = env("HF_TOKEN: a", "X: {secret: b}", "Y: {secret: {from_env: Z}}", "TOKEN_LIMIT: {plain: 7}", "N: 1")
    assert found == {
        "HF_TOKEN": Secret("a"), "X": Secret("b"), "Y": Secret(from_env="Z"), "TOKEN_LIMIT": "7", "N": "1",
    }  # fmt: skip
    assert "'a'" not in repr(found)
    assert "'b'" not in repr(found)


def test_written_down_they_name_where_the_value_comes_from_and_read_back_alike():
    lines = ("HF_TOKEN: a", "X: {secret: b}", "Y: {secret: {from_env: Z}}", "TOKEN_LIMIT: {plain: '7'}", "N: '1'")
    recipe = load_recipe_text(RECIPE + "".join(f"    {line}\n" for line in lines)).recipe
    for mode in ("json", "python"):
        assert recipe.model_dump(mode=mode, by_alias=True)["app"]["env"] == {
            "HF_TOKEN": {"secret": {"from_env": "HF_TOKEN"}},
            "X": {"secret": {"from_env": "X"}},
            "Y": {"secret": {"from_env": "Z"}},
            "TOKEN_LIMIT": {"plain": "7"},
            "N": "1",
        }
    assert "'a'" not in repr(recipe)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X: {secret: a, plain: b}", "a variable has one value, in a map with one key: 'secret' or 'plain'"),
        ("X: {secret: {env: HOME}}", "expected text or {from_env: NAME}, found a map"),
        (
            "X: {secret: {from_env: 'a b'}}",
            "from_env takes the name of an environment variable; this is not such a name",
        ),
        ("X: {secret: [a]}", "expected text, found a list"),
        ("X: {sekret: a}", "expected text, found a map"),
        ("X: {secret: '{{ m }}'}", "the expression uses 'm', which no matrix defines"),
    ],
)
def test_a_bad_secret_is_a_fault_of_its_line(line, message):
    with pytest.raises(InputError) as refused:
        env(line)
    (fault,) = refused.value.diagnostics
    assert fault.message == message
    assert fault.mark.line == 7


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("a", True), (1, True), ({"secret": "a"}, True), ({"secret": {"from_env": "A"}}, True), ({"plain": "a"}, True),
        ({"secret": "a", "plain": "a"}, False), ({}, False), ({"secret": {"env": "A"}}, False), (["a"], False),
    ],
)  # fmt: skip
def test_the_schema_knows_the_same_forms(value, fits):
    data = {"nsw": 1, "name": "t", "app": {"command": "a", "env": {"X": value}}}
    assert jsonschema.Draft202012Validator(recipe_schema()).is_valid(data) is fits


# --- what is shown of a file with faults ---------------------------------------------------------------------------

KEY = "-----BEGIN-KEY-----"
# what stands behind `env:`, and how many lines below it the fault is
FORMS = {
    "folded": ("\n    HF_TOKEN: >\n      hf_SEKRET-1 {{ nope }}", 2),
    "literal": ("\n    HF_TOKEN: |\n      first {{ nope }}\n      SEKRET-1", 2),
    "flow of JSON": (' {"HF_TOKEN": {"secret":"SEKRET-1"}, "X": {"secret":"SEKRET-1 {{ nope }}"}}', 0),
    "flow of JSON without spaces": (' {"HF_TOKEN":"SEKRET-1","N":"{{ nope }}"}', 0),
    "three lines": ("\n    X:\n      secret:\n        SEKRET-1 {{ nope }}", 3),
    "quotes over two lines": ('\n    HF_TOKEN: "a\n      SEKRET-1 {{ nope }}"', 2),
    "a list": ("\n    HF_TOKEN: [SEKRET-1]", 1),
    "a list of lines": ("\n    HF_TOKEN:\n    - SEKRET-1\n    - b", 1),
    "a map": ("\n    HF_TOKEN: {a: SEKRET-1}", 1),
    "a map as key": ("\n    HF_TOKEN: {SEKRET-1}", 1),
    "a map below secret": ("\n    X: {secret: {value: SEKRET-1}}", 1),
    "a misspelt mark": ("\n    X: {sekret: SEKRET-1}", 1),
    "escaped quotes": ('\n    X: {"secret": "{{ \\"SEKRET-1\\"|nofilter }}"}', 1),
    "a filter": ("\n    HF_TOKEN: '{{ n|SEKRET_1 }}'", 1),
    "a wrong expression": ("\n    HF_TOKEN: '{{ n \"SEKRET-1\" }}'", 1),
    "a brace too few": ("\n    HF_TOKEN: '{{ \"SEKRET-1\" }'", 1),
    "the value for its source": ("\n    X: {secret: {from_env: SEKRET-1}}", 1),
    "the value for its source, in lines": ("\n    X:\n      secret:\n        from_env: SEKRET-1", 3),
    "no space": ("\n    HF_TOKEN:SEKRET-1", 1),
    "no space, beside others": ("\n    N: 1\n    HF_TOKEN:SEKRET-1", 2),
    "no space, before others": ("\n    HF_TOKEN:SEKRET-1\n    N: 1", 1),
    "no space in braces": (" {HF_TOKEN:SEKRET-1, N: 1}", 0),
    "as a shell writes it": ("\n    - HF_TOKEN=SEKRET-1", 0),
    "as a shell writes it, in braces": (" {HF_TOKEN=SEKRET-1}", 0),
    "a comma": (" {HF_TOKEN: a,SEKRET-1}", 0),
    "an alias that is none": ("\n    HF_TOKEN: *SEKRET-1", 1),
    "a tag": ("\n    HF_TOKEN: !SEKRET-1 x", 1),
    "a tag of a list": ("\n    HF_TOKEN: !SEKRET-1 [x]", 1),
    "a dash": ("\n    HF_TOKEN:\n      -SEKRET-1", 2),
    "set twice": ("\n    HF_TOKEN: a\n    HF_TOKEN: SEKRET-1", 2),
    "beside a fault": (" {HF_TOKEN: SEKRET-1, N: '{{ nope }}'}", 0),
    "a comment": ("\n    HF_TOKEN: '{{ nope }}'  # SEKRET-1", 1),
    "an open quote": ('\n    HF_TOKEN: "a\n      SEKRET-1', 1),
    "a quote within": ('\n    HF_TOKEN: "a"SEKRET-1', 1),
    "text that is not indented": ("\n    HF_TOKEN: |\nSEKRET-1", 2),
    "a key of lines that are not indented": (f"\n    HF_TOKEN: {KEY}\nSEKRET-1", 2),
    "a bracket": ("\n    HF_TOKEN: [SEKRET-1", 1),
    "a brace within braces": (" {HF_TOKEN: a}SEKRET-1, N: 1}", 0),
    "an anchor": ("\n    N: &a SEKRET-1 {{ nope }}\n    HF_TOKEN: *a", 1),
    "an anchor of no YAML": ("\n    N: &a SEKRET-1: b\n    HF_TOKEN: *a", 1),
    "a dollar": ("\n    HF_TOKEN: '${{ \"SEKRET-1\"|nofilter }}'", 1),
    "misspelt env": ("s: {HF_TOKEN: SEKRET-1}", 0),
    "a comma and a blank": (" {HF_TOKEN: a, SEKRET-1}", 0),
    "no space, and a blank": ("\n    HF_TOKEN:x SEKRET-1", 1),
    "no space, in the line after": ("\n    N\n    HF_TOKEN:x SEKRET-1", 1),
}  # fmt: skip


def told_of(text, folder, name="r.yaml"):
    """What a person reads of a recipe's faults, as `plan` and `render` make it."""
    path = folder / name
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        make_plan(str(path), "local")
    return refused.value.render()


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_secret_is_in_what_is_told_of_it(form, tmp_path):
    block, line = FORMS[form]
    env = f"  env{block}\n" if block.startswith("s:") else f"  env:{block}\n"
    told = told_of(RECIPE.removesuffix("  env:\n") + env, tmp_path)
    assert "SEKRET" not in told
    assert f"r.yaml:{6 + line}:" in told
    assert f"  {6 + line} | {HIDDEN}{tmp_path / 'r.yaml'})" in told


@pytest.mark.parametrize("command", ["plan", "render"])
@pytest.mark.parametrize("form", ["folded", "flow of JSON", "no space", "the value for its source", "an open quote"])
def test_no_command_prints_it(command, form, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(f"{RECIPE.rstrip()}{FORMS[form][0]}\n")
    done = subprocess.run(
        [sys.executable, "-m", "nsw", command, path, "--site", "local"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "SEKRET" not in done.stdout + done.stderr
    assert f"r.yaml:{6 + FORMS[form][1]}:" in done.stderr


STYLES = {
    "plain": "{key}: SEKRET-1{fault}", "single": "{key}: 'SEKRET-1{fault}'", "double": '{key}: "SEKRET-1{fault}"',
    "folded": "{key}: >-\n      a\n\n      SEKRET-1{fault}", "literal": "{key}: |\n      SEKRET-1{fault}\n      SEKRET-2",
    "plain in lines": "{key}: a\n      SEKRET-1{fault}\n      SEKRET-2", "double in lines": '{key}: "a\n      SEKRET-1{fault}"',
    "single in lines": "{key}: 'a\n\n      SEKRET-1{fault}'", "flow": "<<: {{{key}: 'SEKRET-1{fault}', N: 1}}",
    "alias": "A: &a 'SEKRET-1{fault}'\n    {key}: *a", "alias of a map": "A: &a {{secret: 'SEKRET-1{fault}'}}\n    {key}: *a",
    "JSON": '"{key}": {{"secret":"SEKRET-1{fault}"}}', "question": "? {key}\n    : SEKRET-1{fault}",
    "lines of marks": "{key}:\n      secret:\n        SEKRET-1{fault}", "tag": "{key}: !!str SEKRET-1{fault}",
}  # fmt: skip
ERRORS = [" {{ nope }}", " {{ n", " {{ n|SEKRET_3 }}", " {{ n }", "{% SEKRET %}", " ${{ nope }}", "\t\0", " : ] b"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("style", STYLES)
def test_no_style_of_yaml_shows_a_secret_whatever_the_error(style, end, tmp_path):
    for fault in ERRORS:
        text = RECIPE + "    " + STYLES[style].format(key="HF_TOKEN", fault=fault) + "\n    M: '{{ other }}'\n"
        path = tmp_path / "r.yaml"
        path.write_text(text.replace("\n", end), newline="")
        with pytest.raises(InputError) as refused:
            make_plan(str(path), "local")
        assert "SEKRET" not in refused.value.render(), (fault, refused.value.render())


@pytest.mark.parametrize("fault", ["[", '"', "}", "\t: x: y", "{{ nope }}", "%"])
def test_nor_does_text_that_is_not_yaml(fault, tmp_path):
    for style in STYLES.values():
        for before, behind in (("", fault), (fault, "")):
            env = style.format(key="HF_TOKEN", fault=behind)
            text = f"{RECIPE}    B: {before}\n    {env}\n    N: {fault}\nmore: {fault}\n"
            with pytest.raises(InputError) as refused:
                load_recipe_text(text)
            assert "SEKRET" not in refused.value.render(), text


def test_what_is_marked_as_no_secret_stays_visible(tmp_path):
    told = told_of(RECIPE + "    TOKEN_LIMIT: {plain: '77 {{ nope }}'}\n    MAX_TOKENS: '{{ nope }}'\n", tmp_path)
    assert "TOKEN_LIMIT: {plain: '77 {{ nope }}'}\n" in told
    assert "MAX_TOKENS: '{{ nope }}'\n" in told


@pytest.mark.parametrize(
    "secret", ["SEKRET-1", "abc", "SEKRET it's", "12345678", "S" * 60, "sekret{{ nope", "SEKRET\\n1"]
)
@pytest.mark.parametrize("key", ["collect", "repeats", "app.launcher.kind", "passes", "matrix.n"])
def test_no_sentence_repeats_a_secret_that_stands_elsewhere_too(secret, key, tmp_path):
    """As where a value was put behind a wrong key, and the secret is the same."""
    path = tmp_path / "r.yaml"
    path.write_text(f'{RECIPE}    HF_TOKEN: "{secret}"\n')
    with pytest.raises((InputError, UsageError)) as refused:
        make_plan(str(path), "local", options=Overrides((f'{key}="{secret}"', "app.env.N={{ nope }}")))
    assert "SEKRET" not in refused.value.render()
    assert f"'{secret}'" not in refused.value.render()


def test_a_key_without_its_space_is_named_with_what_to_write(tmp_path):
    told = told_of(RECIPE + "    HF_TOKEN:SEKRET-1\n", tmp_path)
    assert "expected a map (key: value), found '***'\n" in told
    assert "hint: write 'HF_TOKEN: ...', with a space after the colon" in told


@pytest.mark.parametrize(
    "setting",
    ["app.env.HF_TOKEN=SEKRET-1 {{ nope }}", "app.env.HF_TOKEN=[SEKRET-1]", 'app.env.HF_TOKEN="SEKRET-1',
     "app.env={HF_TOKEN: SEKRET-1, N: '{{ nope }}'}", "app.env.X={secret: {a: SEKRET-1}}", "ap.env.HF_TOKEN=SEKRET-1 SEKRET"],
)  # fmt: skip
def test_nor_does_an_option_of_the_command_line(setting, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(RECIPE + "    N: 1\n")
    with pytest.raises((InputError, UsageError)) as refused:
        make_plan(str(path), "local", options=Overrides((setting,)))
    assert "SEKRET" not in refused.value.render()


@pytest.mark.parametrize("form", FORMS)
def test_a_sites_file_is_shown_as_a_recipe_is(form, tmp_path):
    path = tmp_path / "sites.yaml"
    block = FORMS[form][0].replace("SEKRET-1 {{ nope }}", "SEKRET-1\0")
    env = f"    env{block}\n" if block.startswith("s:") else f"    env:{block}\n"
    path.write_text(f"nsw: 1\nsites:\n  here:\n{env.replace(chr(10) + '    ', chr(10) + '      ')}    wrong: 1\n")
    with pytest.raises(InputError) as refused:
        read_sites(path)
    assert "SEKRET" not in refused.value.render()


def test_the_search_for_secrets_ends_in_what_almost_looks_like_some():
    for text in ("token: " * 50_000, "token:" * 50_000, "?sig" * 50_000, "?a=" * 50_000, "hooks.slack.com/services/" * 20_000,
                 "chat.googleapis.com/?" * 20_000, "chat.googleapis.com/v1" * 20_000, "AccountKey=" * 50_000, ";Pwd=" * 50_000,
                 "token:\n" * 50_000, "{token: " * 50_000, "token: 'a" * 50_000, "token=" * 50_000,
                 "token:" + " " * 400_000, "token: &a *a\n" * 30_000, "token: |\n x\n" * 30_000):  # fmt: skip
        with ends():
            with contextlib.suppress(InputError):
                parse(text, "f")
            list(named_secrets(text))
            list(secret_parts(text))
