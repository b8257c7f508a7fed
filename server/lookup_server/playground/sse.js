// Server-sent events out of a response body, however its bytes are cut.

/**
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<object>} the JSON values of the events; comments are skipped
 */
export async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const data = block.split("\n").filter((line) => line.startsWith("data: "));
        if (data.length) yield JSON.parse(data.map((line) => line.slice(6)).join("\n"));
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
