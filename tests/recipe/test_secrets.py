"""Which environment variables are secret, by name or by mark, and how they are written down."""

import time

import jsonschema
import pytest

from nsw.errors import InputError
from nsw.recipe.jsonschema import recipe_schema
from nsw.recipe.load import load_recipe_text
from nsw.recipe.secret_names import holds_password, looks_secret, masked
from nsw.recipe.secrets import Secret
from nsw.service.planning import make_plan


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN", "HF_TOKEN", "hf_token", "GITHUB_TOKEN_2", "hfToken", "TOKEN2", "MY_SECRET", "CLIENT_SECRETS", "PASSWORD",
        "DB_PASSWD", "WANDB_API_KEY", "WANDB_APIKEY", "apiKey", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
        "SSH_PRIVATE_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "VAULT_CREDENTIAL", "GPG_PASSPHRASE", "SERVICE_JWT",
        "DB_PASS", "PGPASS", "MYSQL_PWD", "GITHUB_PAT", "REDIS_AUTH", "S3_CREDS", "NGC_CLI_KEY", "WANDB_KEY", "COOKIE",
    ],
)  # fmt: skip
def test_a_name_with_a_part_that_says_so_is_secret(name):
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "KEYBOARD", "MONKEY", "SORT_KEY", "KEY", "API", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "TOKENIZER", "SECRETARY",
        "PASSES", "PWD", "OMP_NUM_THREADS", "PATH", "CUDA_VISIBLE_DEVICES", "COMPASS", "CASSETTE", "API_URL_KEY",
        "OLDPWD", "PASS", "AUTH", "SSH_AUTH_SOCK", "PATTERN", "XAUTHORITY",
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
    assert holds_password(value) is holds


@pytest.mark.parametrize(
    "value",
    [
        "://a:" + "{{}}" * 16, "://a:" + "{{}}" * 100_000, "://a:" + "{{" * 100_000, "{{://a:}}" * 50_000, "://a:" * 50_000,
        "https://" + "t" * 400_000, "a" * 400_000, "https://" * 50_000, "://a:{{" * 50_000 + "}}",
    ],
)  # fmt: skip
def test_what_almost_holds_a_password_takes_time_in_proportion_to_its_length(value):
    began = time.process_time()
    assert not holds_password(value)
    assert masked(value) == value
    assert time.process_time() - began < 2


def test_a_password_is_found_in_and_behind_expressions():
    assert holds_password("a://u:{{ n }}b{{ m }}@h")
    assert holds_password("a://u:{{n}} b://u:{{ c@d }}@h")
    assert holds_password("{{ 'a://u:p@h' }}")
    assert masked("X: {{ 'a://u:p@h' }}") == "X: {{ 'a://u:*@h' }}"


def test_a_url_with_a_password_is_secret_and_is_written_and_read_as_others():
    lines = ("DATABASE_URL: postgres://u:p@h/db", "PROXY: {plain: 'http://u:p@h'}", "PAGE: http://h:80/")
    recipe = load_recipe_text(RECIPE + "".join(f"    {line}\n" for line in lines)).recipe
    assert recipe.app.env["DATABASE_URL"] == Secret("postgres://u:p@h/db")
    assert recipe.model_dump(mode="json", by_alias=True)["app"]["env"] == {
        "DATABASE_URL": {"secret": {"from_env": "DATABASE_URL"}},
        "PROXY": {"plain": "http://u:p@h"},
        "PAGE": "http://h:80/",
    }


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("    HF_TOKEN: abc", "    HF_TOKEN: ***"),
        ("    REPO: https://" + 24 * "t" + "@h/a", "    REPO: https://" + 24 * "*" + "@h/a"),
        ("    HF_TOKEN: a,b{c  # d", "    HF_TOKEN: **********"),
        ('    "HF_TOKEN": "a b"', '    "HF_TOKEN": *****'),
        ("  env: {HF_TOKEN: abc, N: 1}", "  env: {HF_TOKEN: ***, N: 1}"),
        (
            r"""  env: {HF_TOKEN: "a\"}b", PASSWORD: 'it''s', N: x}""",
            "  env: {HF_TOKEN: *******, PASSWORD: *******, N: x}",
        ),
        ("    X: {secret: abc}", "    X: {secret: ***}"),
        ('    HF_TOKEN: "abc', "    HF_TOKEN: ****"),
        ("    HF_TOKEN: {secret: {from_env: OTHER}}", "    HF_TOKEN: {secret: {from_env: OTHER}}"),
        ("    N: abc", "    N: abc"),
        ("    URL: postgres://me:abc@host/db", "    URL: postgres://me:***@host/db"),
        ('  env: {URL: "a://:x{{ n }}@h", N: 1}', '  env: {URL: "a://:********@h", N: 1}'),
        ("- secret: abc", "- secret: ***"),
    ],
)
def test_a_line_is_shown_without_secrets_and_every_column_stays(line, shown):
    assert masked(line) == shown
    assert len(shown) == len(line)


def test_a_secret_that_cannot_be_computed_is_not_in_the_message(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(RECIPE + '    HF_TOKEN: "hf_abcdef{{ 1 / (n - 1) }}"\n')
    with pytest.raises(InputError) as told:
        make_plan(str(recipe), "local")
    (fault,) = told.value.diagnostics
    assert "hf_abcdef" not in f"{fault.message} {fault.hint} {fault.source_line}"
    assert "cannot be computed" in fault.message


RECIPE = "nsw: 1\nname: t\nmatrix: {n: [1]}\napp:\n  command: echo {{ n }}\n  env:\n"


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
        ("X: {secret: {from_env: 'a b'}}", "'a b' cannot name an environment variable"),
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
