"""Renders the templates of testdata by jinja2, in the environment of the transformers library.

Run with jinja2 3.1.6 in the folder of the package: python suite/render.py [folder of templates, file to write]
"""
import datetime, glob, json, os, sys
import jinja2, jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 3, 7, 9, 5, 2)


class Generation(jinja2.ext.Extension):
    """The block generation, whose text is that of its body."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def to_json(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = to_json
env.globals["raise_exception"] = refuse
env.globals["strftime_now"] = lambda format: NOW.strftime(format)

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather \"now\" in a city – 天気", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "The city"}, "days": {"type": "integer", "enum": [1, 2, 7]},
                                     "unit": {"type": ["string", "null"]}}, "required": ["city"]}}}]
CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Łódź", "days": 2, "warm": True, "x": 1.5}}}
u = lambda text: {"role": "user", "content": text}
a = lambda text, **more: {"role": "assistant", "content": text, **more}
CONVERSATIONS = [
    {"messages": [u("Hello")], "add_generation_prompt": True},
    {"messages": [u("  Hi\n\n there "), a("  Hello! \n"), u("{{ x }} <|im_end|> <b>&'\"")], "add_generation_prompt": True},
    {"messages": [{"role": "system", "content": "Be brief."}, u("Why?"), a("<think>\nhm\n</think>\n\nBecause."), u("And?"), a("So.")],
     "add_generation_prompt": False},
    {"messages": [{"role": "system", "content": "You\nhelp."}, u("Weather?"), a("", tool_calls=[CALL]),
                  {"role": "tool", "content": "{\"t\": 21}", "name": "get_weather", "tool_call_id": "call00001"}, a("21 degrees."), u("Thanks")],
     "tools": TOOLS, "add_generation_prompt": True, "enable_thinking": False},
    {"messages": [u("Both?"), a("Let me see.", tool_calls=[CALL, {"id": "call00002", "type": "function", "function": {"name": "stop", "arguments": {}}}]),
                  {"role": "tool", "content": "21", "tool_call_id": "call00001"}, {"role": "tool", "content": "done", "tool_call_id": "call00002"}],
     "tools": TOOLS, "add_generation_prompt": True},
    {"messages": [u("a"), u("b")], "add_generation_prompt": True},
    {"messages": [{"role": "tool", "content": "x"}, a("y")]},
    {"messages": [u([{"type": "text", "text": "Look"}, {"type": "text", "text": " here"}])], "add_generation_prompt": True, "tools": None},
    {"messages": []},
]
COMMON = {"bos_token": "<s>", "eos_token": "</s>", "date_string": "26 Jul 2024"}


def render(source, variables):
    try:
        return {"text": env.from_string(source).render(**variables)}
    except jinja2.exceptions.TemplateSyntaxError as e:
        return {"syntax": str(e)}
    except jinja2.exceptions.TemplateError as e:
        return {"raised": str(e)} if type(e) is jinja2.exceptions.TemplateError else {"error": str(e)}
    except Exception as e:
        return {"error": str(e)}


def main():
    folder, out = (sys.argv[1], sys.argv[2]) if len(sys.argv) > 2 else ("testdata", "testdata/rendered.json")
    cases = {}
    for path in sorted(glob.glob(f"{folder}/*.jinja")):
        source = open(path, encoding="utf-8", newline="").read()
        cases[os.path.basename(path)] = [render(source, {**COMMON, **c}) for c in CONVERSATIONS]
    snippets = [line.rstrip("\n").replace("\\n", "\n") for line in open("testdata/snippets.txt", encoding="utf-8")] if folder == "testdata" else []
    values = {"n": 7, "x": 2.5, "s": "Hello, World", "l": [3, 1, 2], "d": {"b": 1, "a": [True, None]}, "e": "", "words": ["b", "A", "c"],
              "people": [{"name": "Ann", "age": 30, "at": {"city": "X"}}, {"name": "Bob", "age": 25, "at": {"city": "Y"}}]}
    result = {"common": COMMON, "conversations": CONVERSATIONS, "templates": cases, "values": values,
              "snippets": [[s, render(s, values)] for s in snippets]}
    json.dump(result, open(out, "w", encoding="utf-8"), ensure_ascii=False, indent=1)


main()
