#!/usr/bin/env python3
"""A client of the wire in another language, over TCP: a check of docs/protocol.md.

The token is in GYRE_TOKEN; what it prints is JSON. With --cut the connection is broken after
so many events, and another one goes on from there.
"""
import argparse
import json
import os
import socket
import struct
import sys
import uuid

MAX_LINE_BYTES = 16 * 1024 * 1024 + 1


class Refused(Exception):
    """What a nack or an error tells."""


class Wire:
    def __init__(self, port, token):
        self.port, self.token = port, token
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.lines = self.socket.makefile("rb")
        self.sent, self.early = {}, []
        self.ask("hello", {"versions": [1], "token": self.token})

    def cut(self):
        """Breaks the connection without a word, and opens another."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.lines.close()
        self.socket.close()
        self.connect()

    def read(self):
        line = self.lines.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise ConnectionError("The connection broke.")
        return json.loads(line)

    def ask(self, kind, payload, stream=None):
        """Sends a request and gives the payload of its answer; what else comes waits."""
        frame = {"v": 1, "type": kind, "id": "m_" + uuid.uuid4().hex, "payload": payload}
        if stream is not None:
            self.sent[stream] = self.sent.get(stream, 0) + 1
            frame.update(stream=stream, seq=self.sent[stream])
        self.socket.sendall(json.dumps(frame).encode() + b"\n")
        while True:
            answer = self.read()
            if answer.get("re") != frame["id"]:
                self.early.append(answer)
            elif answer["type"] in ("ack", "ready"):
                return answer["payload"]
            else:
                raise Refused(answer["payload"]["code"] + ": " + answer["payload"]["message"])

    def event(self, stream):
        """The next frame of a stream that is no answer."""
        while True:
            frame = self.early.pop(0) if self.early else self.read()
            if frame.get("stream") == stream and "re" not in frame:
                return frame

    def follow(self, stream, ends, take_up, cuts, last=0):
        """The events of a stream in order and without a gap, over any number of connections."""
        seen = 0
        while True:
            if seen in cuts:
                cuts.remove(seen)
                self.cut()
                take_up(last)
            frame = self.event(stream)
            if frame["type"] != "snapshot" and frame.get("from", frame["seq"]) != last + 1:
                raise ValueError("After %d came %s." % (last, json.dumps(frame)))
            last = frame.get("seq", frame["payload"].get("seq"))
            seen += 1
            yield frame
            if frame["type"] in ends:
                return


def build(blocks, event):
    """Takes an event into the blocks of a message: only deltas travel."""
    if event["type"].endswith("_start"):
        blocks[event["contentIndex"]] = ""
    elif event["type"].endswith("_delta"):
        blocks[event["contentIndex"]] += event["delta"]


def check(blocks, told):
    """The end tells the length of each block, in units of UTF-16."""
    for block in told:
        units = len(blocks.get(block["index"], "").encode("utf-16-le", "surrogatepass")) // 2
        if block.get("length", units) != units:
            raise ValueError("Block %d has %d units, not %s." % (block["index"], units, block))


def stream(wire, text, cuts, abort_after):
    model = wire.ask("models", {})["models"][0]
    context = {"messages": [{"role": "user", "content": text, "timestamp": 0}]}
    name, blocks, seqs = "s_" + uuid.uuid4().hex, {}, []
    resume = lambda last: wire.ask("resume", {"after": last}, name)
    wire.ask("stream_request", {"model": model, "context": context, "options": {}}, name)
    for frame in wire.follow(name, ("done", "error"), resume, cuts):
        kind, payload = frame["type"], frame["payload"]
        seqs.append(frame.get("seq", kind))
        # A snapshot is the whole message up to now, as the events that build it.
        for event in payload["events"] if kind == "snapshot" else [dict(payload, type=kind)]:
            build(blocks, event)
        for _ in range(2 if len(seqs) == abort_after else 0):
            wire.ask("abort_request", {}, name)
    check(blocks, payload["blocks"])
    return {"end": kind, "reason": payload["reason"], "blocks": blocks, "seqs": seqs}


def session(wire, text, cuts):
    made = wire.ask("session_create", {})
    name, place = made["session"], {"epoch": made["epoch"]}
    wire.ask("prompt", {"text": text}, name)
    attach = lambda last: wire.ask("session_attach", dict(place, after=last), name)
    frames = list(wire.follow(name, ("agent_end",), attach, cuts, made["seq"]))
    seqs, end = [frame.get("seq") for frame in frames], frames[-1]["payload"]
    return {"session": name, "stop": end["stop"], "seqs": seqs}


def sessions(wire, limit, words):
    """The sessions with these words in their titles or first prompts, page by page."""
    asked = {"limit": limit, "query": words} if words else {"limit": limit}
    pages, page = [], asked
    while True:
        answer = wire.ask("session_list", page)
        pages.append([each["id"] for each in answer["sessions"]])
        if "next" not in answer:
            return pages
        page = dict(asked, cursor=answer["next"])


def amend(wire, session, title):
    """Renames a session, puts it away, and gives the id of a fork of it."""
    wire.ask("session_rename", {"session": session, "title": title})
    wire.ask("session_archive", {"session": session, "archived": True})
    return wire.ask("session_fork", {"session": session})["session"]


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("command", choices=("models", "stream", "session", "sessions", "attach", "amend"))
parser.add_argument("words", nargs="?", default="", help="a prompt, or the id of a session")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--cut", type=int, action="append", default=[], help="after so many events")
parser.add_argument("--limit", type=int, default=100, help="sessions of a page")
parser.add_argument("--title", default="Tea", help="of a session")
parser.add_argument("--abort", type=int, default=0, help="after so many events")
args, token = parser.parse_args(), os.environ.get("GYRE_TOKEN", "")
try:
    wire, words = Wire(args.port, token), args.words
    done = {
        "models": lambda: wire.ask("models", {})["models"],
        "stream": lambda: stream(wire, words, args.cut, args.abort),
        "session": lambda: session(wire, words, args.cut),
        "sessions": lambda: sessions(wire, args.limit, words),
        "amend": lambda: amend(wire, words, args.title),
        "attach": lambda: wire.ask("session_attach", {}, words) and wire.event(words)["payload"],
    }
    print(json.dumps(done[args.command]()))
except Refused as refused:
    sys.exit(str(refused))
