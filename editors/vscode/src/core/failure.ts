/** What can go wrong between the editor and the service, in kinds that call for different things. */

import { isFields } from "./protocol";

/**
 * - `offline`: nobody answers; try again later.
 * - `unauthorized`: a key is missing or wrong.
 * - `unsupported`: this model or service cannot do it.
 * - `busy`: try again after `retryAfter` seconds.
 * - `refused`: the service says why it will not do this request.
 * - `odd`: the answer is not one of this service.
 * - `cut`: the answer ended before its end.
 */
export type FailureKind = "offline" | "unauthorized" | "unsupported" | "busy" | "refused" | "odd" | "cut";

export class Failure extends Error {
  override readonly name = "Failure";

  /**
   * @param message one sentence for the user.
   * @param retryAfter seconds.
   */
  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

/** The failure that a status other than 200 means. */
export async function failureOf(response: Response): Promise<Failure> {
  const told = messageIn(await response.text().catch(() => ""));
  const message = told ?? `The service answered with status ${response.status}, and not in its own form.`;
  switch (response.status) {
    case 401:
    case 403:
      return new Failure("unauthorized", told ?? "The service wants an API key.");
    case 404:
    case 405:
      return new Failure(told === undefined ? "odd" : "refused", message);
    case 501:
      return new Failure("unsupported", message);
    case 429:
    case 503: {
      const seconds = Number(response.headers.get("retry-after") ?? "1");
      return new Failure("busy", told ?? "The service is busy.", Number.isFinite(seconds) ? Math.max(1, seconds) : 1);
    }
    default:
      return new Failure(told === undefined ? "odd" : "refused", message);
  }
}

/** The message of an error body, if a text is one. */
export function messageIn(body: string): string | undefined {
  try {
    const value: unknown = JSON.parse(body);
    const error = isFields(value) ? value["error"] : undefined;
    const message = isFields(error) ? error["message"] : undefined;
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}
