import { connectUrl } from "@gyre/protocol";
import { useAgent, type ViewMessage } from "@gyre/react";
import { memo, StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const connect = connectUrl(`${location.origin}/api/gyre`);
// The session is in the address: it is there when the page is loaded again.
const opened = location.hash.slice(1);

function Chat() {
  const source = opened === "" ? { connect } : { connect, session: opened };
  const { messages, status, connection, error, session, ...agent } = useAgent(source);
  const [text, setText] = useState("");
  useEffect(() => {
    if (session !== undefined) history.replaceState(null, "", `#${session}`);
  }, [session]);
  const isRunning = status === "running";

  return (
    <>
      <main role="log">
        {messages.map((message) => (
          <Message key={message.id} message={message} approve={agent.approve} deny={agent.deny} />
        ))}
      </main>
      {connection === "reconnecting" && <p>The connection broke. Trying again…</p>}
      {/* Why a run failed stands in its message. */}
      {error !== undefined && status !== "failed" && <p role="alert">{error}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void agent.prompt(text);
          setText("");
        }}
      >
        <input
          aria-label="Message"
          value={text}
          onChange={({ target }) => setText(target.value)}
          autoComplete="off"
          required
        />
        <button disabled={isRunning || connection !== "connected"}>Send</button>
        <button type="button" disabled={!isRunning} onClick={() => void agent.abort()}>
          Stop
        </button>
      </form>
    </>
  );
}

interface MessageProps {
  message: ViewMessage;
  approve: (id: string) => Promise<void>;
  deny: (id: string) => Promise<void>;
}

/** A message that has not changed is the same object: it is not rendered again while others stream. */
const Message = memo(function Message({ message, approve, deny }: MessageProps) {
  return (
    <article data-role={message.role}>
      {message.parts.map((part, at) => {
        if (part.type === "text") return <p key={at}>{part.text}</p>;
        if (part.type === "error") {
          return (
            <p key={at} role="alert">
              {part.text}
            </p>
          );
        }
        if (part.type !== "tool") return null;
        return (
          <div key={at}>
            {part.name} <code>{JSON.stringify(part.input)}</code>
            {part.state === "approval-requested" && (
              <p>
                May it run? <button onClick={() => void approve(part.id)}>Allow</button>
                <button onClick={() => void deny(part.id)}>Deny</button>
              </p>
            )}
            {part.state === "output-available" && <p>{String(part.output)}</p>}
            {part.state === "output-denied" && <p>It was denied.</p>}
            {part.state === "output-error" && <p role="alert">{part.errorText}</p>}
          </div>
        );
      })}
      {message.error !== undefined && <p role="alert">{message.error}</p>}
    </article>
  );
});

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <Chat />
    </StrictMode>,
  );
}
