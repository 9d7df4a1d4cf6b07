"""Expressions of recipes and sites: whatever is known to break out of Jinja is refused here, and touches nothing."""

import pytest

from nsw.recipe.expressions import Expression
from nsw.recipe.units import Fault

_OBJECTS = ("''", "[]", "{}", "()", "1", "1.5", "true", "none", "n", "text", "items", "site")
_DUNDERS = ("__class__", "__class__.__mro__", "__class__.__base__.__subclasses__()", "__init__.__globals__", "__doc__")
_FUNCTIONS = (
    "range", "items.append", "text.upper", "site.items", "n.bit_length", "lipsum", "cycler", "joiner", "namespace", "dict",
    "self", "caller", "varargs", "kwargs", "loop", "super", "get_flashed_messages", "url_for", "config", "request",
)  # fmt: skip

ATTRIBUTES = [f"{{{{ {of}.{name} }}}}" for of in _OBJECTS for name in _DUNDERS if (of, name) != ("1", "__doc__")]
ESCAPES = [
    *(f"{{{{ {of}.__globals__ }}}}" for of in _FUNCTIONS),
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ ''|attr('__cla' ~ 'ss__') }}",
    "{{ ''['__cla' ~ 'ss__'].__mro__[1].__subclasses__() }}",
    "{{ ''['\\x5f\\x5fclass\\x5f\\x5f'] }}",
    "{{ [].__class__.__base__.__subclasses__()[1]('touch PWNED') }}",
    "{{ self._TemplateReference__context }}",
    "{{ self.__init__.__globals__.__builtins__.__import__('os').system('touch PWNED') }}",
    "{{ cycler.__init__.__globals__.os.popen('touch PWNED').read() }}",
    "{{ joiner.__init__.__globals__.os }}",
    "{{ namespace.__init__.__globals__.os }}",
    "{{ lipsum.__globals__['os'].popen('touch PWNED') }}",
    "{{ dict.__base__.__subclasses__() }}",
    "{{ dict.mro() }}",
    "{{ range.__class__.__base__ }}",
    "{{ (range(2)|list).__class__ }}",
    "{{ ''.format.__self__.__class__ }}",
    "{{ '{0.__class__.__mro__}'.format(1) }}",
    "{{ '{x.__class__}'.format(x=1) }}",
    "{{ '{0.__class__}'.format_map({'0': 1}) }}",
    "{{ ['{0.__class__}']|map('format', 1)|first }}",
    "{{ ''|format.__class__ }}",
    "{{ ['']|map(attribute='__class__')|list }}",
    "{{ ['']|map('attr', '__class__')|list }}",
    "{{ ['x']|groupby('__class__') }}",
    "{{ ['x']|sort(attribute='__class__')|first.__class__ }}",
    "{{ ['x']|sum(attribute='__class__') }}",
    "{{ ['x']|selectattr('__class__')|list }}",
    "{{ ['x']|map('string.__class__')|list }}",
    "{% set x = ''.__class__ %}{{ x }}",
    "{% for c in ''.__class__.__subclasses__() %}{{ c }}{% endfor %}",
    "{% if ''.__class__.__mro__ %}x{% endif %}",
    "{% include '/etc/passwd' %}",
    "{% import '/etc/passwd' as x %}",
    "{% from '/etc/passwd' import x %}",
    "{% extends '/etc/passwd' %}",
    "{% do [].append(1) %}",
    "{% debug %}",
    "{{ __import__('os').system('touch PWNED') }}",
    "{{ eval('1') }}",
    "{{ exec('1') }}",
    "{{ open('PWNED', 'w') }}",
    "{{ getattr('', '__class__') }}",
    "{{ items.append(1) }}",
    "{{ items.clear() }}",
    "{{ site.update(a=1) }}",
    "{{ site.pop('name') }}",
]
VALUES = {"n": 4, "text": "words", "items": [1, 2], "site": {"name": "here"}}


@pytest.mark.parametrize("text", [*ATTRIBUTES, *ESCAPES])
def test_what_breaks_out_of_jinja_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {**VALUES, "items": [1, 2], "site": {"name": "here"}}
    with pytest.raises(Fault):
        Expression.parse(text).render(values)
    assert values == VALUES
    assert list(tmp_path.iterdir()) == []
