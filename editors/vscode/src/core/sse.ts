/** Server-sent events, from bytes to the data of each event. */

/** Takes a stream in pieces of any size; the result does not depend on how it was cut. */
export class SseParser {
  private readonly decoder = new TextDecoder();
  private line = "";
  private data: string[] = [];
  private afterReturn = false;

  /** The data of the events that a piece completes. */
  push(piece: Uint8Array): string[] {
    return this.read(this.decoder.decode(piece, { stream: true }));
  }

  /** Whether the stream stopped inside an event, which then is not one. */
  get unfinished(): boolean {
    return this.line !== "" || this.data.length > 0;
  }

  private read(text: string): string[] {
    const events: string[] = [];
    let from = 0;
    if (this.afterReturn && text.startsWith("\n")) {
      from = 1;
    }
    if (text !== "") {
      this.afterReturn = text.endsWith("\r");
    }
    const end = /\r\n|\r|\n/g;
    end.lastIndex = from;
    for (let match = end.exec(text); match !== null; match = end.exec(text)) {
      const event = this.take(this.line + text.slice(from, match.index));
      if (event !== undefined) {
        events.push(event);
      }
      this.line = "";
      from = end.lastIndex;
    }
    this.line += text.slice(from);
    return events;
  }

  private take(line: string): string | undefined {
    if (line === "") {
      const event = this.data.length > 0 ? this.data.join("\n") : undefined;
      this.data = [];
      return event;
    }
    if (line === "data") {
      this.data.push("");
    } else if (line.startsWith("data:")) {
      this.data.push(line.slice(line[5] === " " ? 6 : 5));
    }
    return undefined; // a comment, or a field that edits do not use
  }
}
