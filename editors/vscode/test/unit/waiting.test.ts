import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Connection, LAPSE, PAUSES } from "../../src/core/connection";
import { Failure } from "../../src/core/failure";
import { Latest, slept } from "../../src/core/latest";

const NEVER = new AbortController().signal;
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) {
    await Promise.resolve();
  }
};

test("thirty letters, fifteen a second, bring one request, for the last of them", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const latest = new Latest();
    const asked: number[] = [];
    const answers: Promise<unknown>[] = [];
    for (let letter = 0; letter < 30; letter += 1) {
      answers.push(latest.run(100, NEVER, (signal) => (asked.push(letter), slept(2_000, signal))));
      mock.timers.tick(66);
      await settled();
    }
    mock.timers.tick(3_000);
    await settled();
    mock.timers.tick(3_000);
    await Promise.all(answers);
    assert.deepEqual(asked, [29]);
  } finally {
    mock.timers.reset();
  }
});

test("newer work ends the work that runs, whose result is nothing", async () => {
  const latest = new Latest();
  const running: AbortSignal[] = [];
  const work = (signal: AbortSignal): Promise<boolean> => (running.push(signal), slept(10, signal));
  const first = latest.run(0, NEVER, work);
  await slept(3, NEVER);
  const second = latest.run(0, NEVER, work);
  assert.equal(running[0]?.aborted, true);
  assert.equal(await second, true);
  assert.equal(await first, false);
  await assert.rejects(
    latest.run(0, NEVER, () => Promise.reject(new Error("broken"))),
    /broken/,
  );
});

test("an absent service is asked six times in a minute at most, told of once, and found within 30 s", async () => {
  let clock = 0;
  let due: { at: number; run: () => void } | undefined;
  const asked: number[] = [];
  const told: string[] = [];
  let there = false;
  const connection = new Connection(
    () => (asked.push(clock), Promise.resolve(there ? "tiny" : new Failure("offline", "No."))),
    (state) => told.push(state.kind),
    (seconds, run) => ((due = { at: clock + seconds, run }), () => (due = undefined)),
  );
  const until = async (end: number): Promise<void> => {
    for (; clock < end; clock += 0.5) {
      if (due !== undefined && due.at <= clock) {
        const { run } = due;
        due = undefined;
        run();
      }
      await settled();
    }
  };
  await connection.check();
  await until(600);
  assert.ok(asked.filter((time) => time < 60).length <= 6, asked.join());
  assert.deepEqual(told, ["away"]);
  there = true;
  await until(630);
  assert.deepEqual(told, ["away", "online"]);
  connection.failed(new Failure("offline", "Gone."));
  assert.equal(connection.online, false);
  assert.ok(Math.max(...PAUSES) < 30);
  connection.failed(new Failure("busy", "Later.", 5));
  assert.deepEqual(told, ["away", "online", "away"], "a busy service is still there");
  connection.close();
});

test("a model that cannot complete is tried again after a while, or when it is looked for or is another", async () => {
  let due: { seconds: number; run: () => void } | undefined;
  let model = "tiny";
  let told = 0;
  const connection = new Connection(
    () => Promise.resolve(model),
    () => (told += 1),
    (seconds, run) => ((due = { seconds, run }), () => (due = undefined)),
  );
  await connection.check();
  const lacks = (): void => {
    connection.lacksCompletion("No tokens.");
    assert.deepEqual([connection.online, connection.withoutCompletion, due?.seconds], [true, "No tokens.", LAPSE]);
  };
  lacks();
  due?.run();
  assert.equal(connection.withoutCompletion, undefined);
  lacks();
  lacks();
  assert.equal(told, 4, "of what is known already nobody is told again");
  await connection.check();
  assert.deepEqual([connection.withoutCompletion, due], [undefined, undefined], "the same model, asked again");
  lacks();
  model = "other";
  await connection.check();
  assert.deepEqual([connection.withoutCompletion, due], [undefined, undefined]);
  connection.close();
});
