/** What goes over the wire: `edit-stream/1` (see PROTOCOL.md) and filling in. */

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

export interface DocumentBody {
  readonly uri: string;
  readonly language_id: string;
  readonly version: number;
  readonly text: string;
  /** Decides only where the text has no line end. */
  readonly eol?: "lf" | "crlf";
}

export interface EditRequest {
  readonly document: DocumentBody;
  readonly instruction?: string;
  readonly update?: string;
  readonly edit_history?: readonly string[];
  readonly cursor?: Position;
  readonly range?: Range;
  readonly mode: "edit" | "apply" | "next_edit";
  readonly options: { readonly granularity: "hunk" | "line"; readonly speculation: boolean; readonly trace?: boolean };
}

export interface WarmRequest {
  readonly document: DocumentBody;
}

export interface InfillRequest {
  readonly input_prefix: string;
  readonly prompt: string;
  readonly input_suffix: string;
  readonly input_extra: readonly { readonly filename: string; readonly text: string }[];
  readonly n_predict: number;
  readonly t_max_predict_ms: number;
  readonly speculation: boolean;
}

/** Lines from `start_line` up to but not including `end_line`. */
export interface LineRange {
  readonly start_line: number;
  readonly end_line: number;
}

export interface StartEvent {
  readonly type: "start";
  readonly edit_id: string;
  readonly model: string;
  readonly document: { readonly sha256: string; readonly lines: number };
  readonly range: LineRange;
  readonly narrowed: boolean;
}

export interface ProgressEvent {
  readonly type: "progress";
  readonly old_line: number;
  readonly old_lines: number;
  readonly tokens: number;
  readonly accepted: number;
  readonly rejected: number;
}

export interface HunkEvent {
  readonly type: "hunk";
  readonly hunk_id: number;
  readonly state: "open" | "delta" | "closed";
  readonly old: LineRange;
  readonly text: string;
}

/** A forward pass of the model. */
export interface TraceEvent {
  readonly type: "trace";
  readonly step: number;
  /** What it added to the answer, and what proposed each token: `""` where nothing did. */
  readonly tokens: readonly { readonly text: string; readonly source: string }[];
}

export interface DoneEvent {
  readonly type: "done";
  readonly finish_reason: "stop" | "no_change" | "length" | "cancelled" | "stale";
  readonly truncated: boolean;
  readonly result_sha256: string;
}

export interface ErrorEvent {
  readonly type: "error";
  readonly error: { readonly message: string; readonly code: string | null };
  readonly safe_to_keep: boolean;
}

export type EditEvent = StartEvent | ProgressEvent | HunkEvent | TraceEvent | DoneEvent | ErrorEvent;

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === "string";
const count: Check = (value) => Number.isInteger(value) && (value as number) >= 0;
const flag: Check = (value) => typeof value === "boolean";
const lines: Check = (value) => fits(value, { start_line: count, end_line: count });
const one =
  (...names: string[]): Check =>
  (value) =>
    names.includes(value as string);
const FORMS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  start: {
    edit_id: text,
    model: text,
    document: (value) => fits(value, { sha256: text, lines: count }),
    range: lines,
    narrowed: flag,
  },
  progress: { old_line: count, old_lines: count, tokens: count, accepted: count, rejected: count },
  hunk: { hunk_id: count, state: one("open", "delta", "closed"), old: lines, text },
  trace: {
    step: count,
    tokens: (value) => Array.isArray(value) && value.every((token) => fits(token, { text, source: text })),
  },
  done: {
    finish_reason: one("stop", "no_change", "length", "cancelled", "stale"),
    truncated: flag,
    result_sha256: text,
  },
  error: { error: (value) => fits(value, { message: text }), safe_to_keep: flag },
};

/**
 * An event from its JSON; nothing for a type that this version does not know.
 *
 * @throws SyntaxError it is not JSON, or a known event lacks a field.
 */
export function eventFrom(data: string): EditEvent | undefined {
  const value: unknown = JSON.parse(data);
  const type = isFields(value) ? value["type"] : undefined;
  if (typeof type !== "string") {
    throw new SyntaxError("An event has no type.");
  }
  const form = Object.hasOwn(FORMS, type) ? FORMS[type] : undefined;
  if (form === undefined) {
    return undefined;
  }
  if (!fits(value, form)) {
    throw new SyntaxError(`A ${type} event is not as the protocol says: ${data.slice(0, 200)}`);
  }
  return value as EditEvent;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fits(value: unknown, form: Readonly<Record<string, Check>>): boolean {
  return isFields(value) && Object.entries(form).every(([name, check]) => check(value[name]));
}
