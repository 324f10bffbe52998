import { PassThrough, Readable, Writable } from "node:stream";
import {
  client,
  type ClientCapabilities,
  type ClientContext,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { serveAcp } from "../modes/acp/acp.ts";
import type { AcpHost } from "../modes/acp/host.ts";

/** A message as it was written to standard output. */
export interface Written {
  id?: unknown;
  method?: string;
  params?: { sessionId?: string; update?: SessionUpdate };
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

export type Answer = (
  request: RequestPermissionRequest,
) => RequestPermissionResponse | Promise<RequestPermissionResponse>;

export interface TestEditor {
  /** The protocol's methods. */
  readonly agent: ClientContext;
  readonly asked: RequestPermissionRequest[];
  /** All of standard output, each line parsed: a byte that is no message is an error. */
  written(): Written[];
  /** The updates so far. */
  updates(sessionId?: string): SessionUpdate[];
  /** Settles with the first update that is meant, once it is there. */
  update(isMeant: (update: SessionUpdate) => boolean): Promise<SessionUpdate>;
  stderr(): string;
  /** Closes standard input; the exit code. */
  end(): Promise<number>;
  /** Writes bytes of one's own to standard input. */
  raw(text: string): void;
  /** Settles with the first message that is meant. */
  message(isMeant: (message: Written) => boolean): Promise<Written>;
}

export interface EditorOptions {
  load: () => Promise<AcpHost>;
  answer?: Answer;
  /** Has the user fill in forms; needs the capability. */
  elicit?: (request: CreateElicitationRequest) => CreateElicitationResponse;
  capabilities?: ClientCapabilities;
  signal?: AbortSignal;
}

/** An editor made of the SDK's own client, and the server, each at an end of two pipes. */
export async function startEditor(options: EditorOptions): Promise<TestEditor> {
  const stdin = new PassThrough();
  const pipe = new PassThrough();
  const asked: RequestPermissionRequest[] = [];
  const watchers = new Set<() => void>();
  let stdout = "";
  let stderr = "";
  const served = serveAcp({
    io: {
      stdin,
      stdout: {
        write(text) {
          stdout += text;
          for (const look of [...watchers]) look();
          return pipe.write(text);
        },
      },
      stderr: { write: (text) => (stderr += text) },
      signal: options.signal ?? new AbortController().signal,
    },
    version: "1.2.3",
    load: options.load,
  });
  const connection = client({ name: "test" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      return options.answer?.(params) ?? { outcome: { outcome: "cancelled" } };
    })
    .onRequest(
      methods.client.elicitation.create,
      ({ params }) => options.elicit?.(params) ?? { action: "cancel" },
    )
    .onNotification(methods.client.session.update, () => undefined)
    .connect(
      ndJsonStream(
        Writable.toWeb(stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(pipe) as ReadableStream<Uint8Array>,
      ),
    );
  const written = (): Written[] =>
    stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => messageIn(line));
  const find = <T>(look: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const tryAgain = (): void => {
        const found = look();
        if (found === undefined) return;
        watchers.delete(tryAgain);
        resolve(found);
      };
      watchers.add(tryAgain);
      tryAgain();
    });
  const updates = (sessionId?: string): SessionUpdate[] =>
    written().flatMap(({ params }) =>
      params?.update && (sessionId === undefined || params.sessionId === sessionId)
        ? [params.update]
        : [],
    );
  await connection.agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: options.capabilities ?? {},
  });
  return {
    agent: connection.agent,
    asked,
    written,
    updates,
    update: (isMeant) => find(() => updates().find(isMeant)),
    message: (isMeant) => find(() => written().find(isMeant)),
    stderr: () => stderr,
    raw: (text) => void stdin.write(text),
    async end() {
      connection.close();
      stdin.end();
      const code = await served;
      if (stdout !== "" && !stdout.endsWith("\n")) throw new Error("The last line has no end.");
      written();
      return code;
    },
  };
}

function messageIn(line: string): Written {
  const message: { jsonrpc?: unknown } & Written = JSON.parse(line);
  if (message.jsonrpc !== "2.0") throw new Error(`This is no message: ${line}`);
  return message;
}
