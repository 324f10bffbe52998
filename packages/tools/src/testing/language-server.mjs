// A language server for tests: reports each line with "wrong" as an error, in the way that its arguments name:
// --push (by itself, twice: first nothing), --pull, --silent, --die, --ask (asks its client before it answers).
const way = new Set(process.argv.slice(2));
let input = Buffer.alloc(0);
const texts = new Map();
const waiting = new Map();
let lastId = 0;

function send(message) {
  const text = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

function ask(method, params) {
  const id = `s${++lastId}`;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

function find(text) {
  return text.split("\n").flatMap((row, line) => {
    const character = row.indexOf("wrong");
    const range = { start: { line, character }, end: { line, character: character + 5 } };
    if (character < 0) return [];
    return [
      { range, severity: 1, code: 7, message: `it is\n wrong \u001B[31m` },
      { range, severity: 2, message: "a warning" },
    ];
  });
}

async function report(uri, version) {
  if (!way.has("--push")) return;
  send({
    method: "textDocument/publishDiagnostics",
    params: { uri, version: version - 1, diagnostics: find("wrong") },
  });
  send({ method: "textDocument/publishDiagnostics", params: { uri, version, diagnostics: [] } });
  await new Promise((resolve) => setImmediate(resolve));
  send({
    method: "textDocument/publishDiagnostics",
    params: { uri, version, diagnostics: find(texts.get(uri)) },
  });
}

async function take({ id, method, params, result, error }) {
  if (method === undefined) return waiting.get(id)?.(error ?? result);
  const document = params?.textDocument;
  if (method === "initialize") {
    const diagnosticProvider = way.has("--pull") ? { interFileDependencies: true } : undefined;
    send({ id, result: { capabilities: { textDocumentSync: 1, diagnosticProvider } } });
  } else if (method === "textDocument/didOpen" || method === "textDocument/didChange") {
    if (way.has("--die")) process.exit(3);
    if (way.has("--silent")) return;
    texts.set(document.uri, document.text ?? params.contentChanges[0].text);
    if (way.has("--ask")) {
      const settings = await ask("workspace/configuration", { items: [{}, {}] });
      const unknown = await ask("workspace/applyEdit", {});
      if (settings.length !== 2 || unknown.code !== -32601) process.exit(4);
    }
    await report(document.uri, document.version);
  } else if (method === "textDocument/diagnostic") {
    send({ id, result: { kind: "full", items: find(texts.get(document.uri)) } });
  } else if (method === "exit") process.exit(0);
}

process.stdin.on("data", (bytes) => {
  input = Buffer.concat([input, bytes]);
  for (;;) {
    const end = input.indexOf("\r\n\r\n");
    const length =
      end < 0 ? NaN : Number(/length: (\d+)/i.exec(input.toString("utf8", 0, end))?.[1]);
    if (!(input.length >= end + 4 + length)) return;
    const text = input.toString("utf8", end + 4, end + 4 + length);
    input = input.subarray(end + 4 + length);
    void take(JSON.parse(text));
  }
});
