"""Writes clients.json: the requests that OpenAI's clients of PyPI and npm send, word for word, and the schemas of the answers that
they expect, as the types of the PyPI client declare them. The requests go through this program to a server, so
that the clients also read real answers; an exception of theirs ends the recording.

    pip install openai==3.57.0 && npm i openai@6.49.0
    rlx serve FOLDER -name tiny -alternatives 4 -address localhost:8080 -embeddings ../../models/testdata/minilm
    python clients.py http://localhost:8080 FOLDER_OF_NODE_MODULES [FILE]

`make test-clients` does so beside a test's server, and compares the requests with the file that is here.
"""

import http.server
import json
import pathlib
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import openai
from openai import types
from openai.types.chat import ChatCompletion, ChatCompletionChunk

TARGET, MODULES = sys.argv[1:3]
FILE = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else pathlib.Path(__file__).parent / "clients.json"
CHAT = dict(model="tiny", messages=[{"role": "user", "content": "ABCDEF"}], temperature=0, max_tokens=8)
TEXT = dict(model="tiny", prompt="ABCDEF", temperature=0, max_tokens=8)
STREAM = dict(stream=True, stream_options={"include_usage": True})
CALLS = {  # of the resource of a client, and the type of the answer or of its events
    "models.list": ({}, "models"),
    "chat.completions.create": (CHAT, "chat"),
    "chat.completions.create logprobs": (dict(CHAT, logprobs=True, top_logprobs=2, n=2, stop=["~"], seed=1), "chat"),
    "chat.completions.create stream": (dict(CHAT, **STREAM), "chat chunk"),
    "completions.create": (dict(TEXT, logprobs=2), "text"),
    "completions.create stream": (dict(TEXT, **STREAM), "text chunk"),
    "embeddings.create": (dict(model="tiny", input=["the cat", "a big dog runs"]), "embeddings"),
}
NODE = """
import OpenAI from 'openai';
const [base, calls] = process.argv.slice(2), client = new OpenAI({ baseURL: base, apiKey: 'none', maxRetries: 0 });
for (const [name, given] of JSON.parse(calls)) {
  let at = client, call = client;
  for (const part of name.split(' ')[0].split('.')) [at, call] = [call, call[part]];
  const answer = await call.call(at, ...Object.keys(given).length ? [given] : []);
  if (given.stream) { for await (const part of answer) part.id.length; }
}
"""
recorded, current = [], {}


class Recorder(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.pass_on(None)

    def do_POST(self):
        self.pass_on(self.rfile.read(int(self.headers["content-length"])))

    def pass_on(self, body):
        keep = ("accept", "content-type", "authorization", "user-agent")
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() in keep}
        recorded.append(dict(current, method=self.command, path=self.path, headers=headers, body=(body or b"").decode()))
        try:
            answer = urllib.request.urlopen(urllib.request.Request(TARGET + self.path, body, headers, method=self.command))
        except urllib.error.HTTPError as error:
            answer = error
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers["content-type"])
        self.end_headers()
        self.wfile.write(answer.read())


def record(base):
    client = openai.OpenAI(base_url=base, api_key="none", max_retries=0)
    for name, (given, kind) in CALLS.items():
        current.update(client="pypi", answer=kind)
        call = client
        for part in name.split(" ")[0].split("."):
            call = getattr(call, part)
        answer = call(**given)
        if given.get("stream"):
            assert all(part.id for part in answer)
    script = pathlib.Path(MODULES) / "clients.mjs"
    script.write_text(NODE)
    for name, (given, kind) in CALLS.items():
        current.update(client="npm", answer=kind)
        subprocess.run(["node", script, base, json.dumps([[name, given]])], check=True, cwd=MODULES)
    script.unlink()


def bare(x):
    """A schema without what says nothing about values."""
    if isinstance(x, list):
        return [bare(part) for part in x]
    if not isinstance(x, dict):
        return x
    return {key: {name: bare(part) for name, part in value.items()} if key in ("properties", "$defs") else bare(value)
            for key, value in x.items() if key not in ("title", "description", "default", "additionalProperties", "discriminator")}


server = http.server.ThreadingHTTPServer(("localhost", 0), Recorder)
threading.Thread(target=server.serve_forever, daemon=True).start()
record(f"http://localhost:{server.server_address[1]}/v1")
schemas = {"chat": ChatCompletion, "chat chunk": ChatCompletionChunk, "text": types.Completion, "models": types.Model,
           "embeddings": types.CreateEmbeddingResponse}
schemas = {name: bare(kind.model_json_schema()) for name, kind in schemas.items()}
# The client's type of a page of models has no schema of its own, and that of numbers is what base64 becomes.
schemas["models"] = {"type": "object", "required": ["object", "data"], "properties": {
    "object": {"const": "list"}, "data": {"type": "array", "items": schemas["models"]}}}
schemas["embeddings"]["$defs"]["Embedding"]["properties"]["embedding"] = {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}
# An event of a stream of texts has the type of a whole answer, but for its reason, which OpenAI's own service leaves null before the end.
chunk = schemas["text chunk"] = json.loads(json.dumps(schemas["text"]))
reason = chunk["$defs"]["CompletionChoice"]["properties"]["finish_reason"]
chunk["$defs"]["CompletionChoice"]["properties"]["finish_reason"] = {"anyOf": [reason, {"type": "null"}]}
FILE.write_text(json.dumps({"requests": recorded, "schemas": schemas}, indent=1, ensure_ascii=False) + "\n")
