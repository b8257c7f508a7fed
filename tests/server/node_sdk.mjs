// What a client of OpenAI's Node SDK does; prints one JSON object with what came of it.
import OpenAI, { BadRequestError, NotFoundError } from 'openai'

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: 'unused', maxRetries: 0 })
const messages = [{ role: 'user', content: 'say add' }]
const options = { model: 'tiny', messages, max_tokens: 20, temperature: 0 }
const told = {}

const whole = await client.chat.completions.create(options)
told.whole = whole.choices[0].message.content
told.usage = whole.usage

let text = ''
for await (const chunk of await client.chat.completions.create({
  ...options, stream: true, stream_options: { include_usage: true },
})) {
  text += chunk.choices[0]?.delta.content ?? ''
  told.streamUsage = chunk.usage ?? told.streamUsage
}
told.streamed = text

const runner = client.chat.completions.stream(options)
told.helper = (await runner.finalChatCompletion()).choices[0].message.content

const predicted = await client.chat.completions.create({
  ...options, prediction: { type: 'content', content: told.whole },
})
told.predicted = predicted.choices[0].message.content
told.details = predicted.usage.completion_tokens_details

const completion = await client.completions.create({ model: 'tiny', prompt: ['def', 'for'], n: 2, max_tokens: 5, logprobs: 2, seed: 1 })
told.choices = completion.choices.map((one) => [one.index, one.logprobs.tokens.length])
told.models = (await client.models.list()).data.map((one) => one.id)

const formed = await client.chat.completions.create({
  ...options, max_tokens: 200,
  response_format: {
    type: 'json_schema',
    json_schema: { name: 't', strict: true, schema: { type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'], additionalProperties: false } },
  },
})
told.formed = JSON.parse(formed.choices[0].message.content)

try {
  await client.completions.create({ model: 'gpt-4', prompt: 'x' })
} catch (error) {
  told.missing = [error instanceof NotFoundError, error.code]
}
try {
  await client.chat.completions.create({ ...options, temperature: -1 })
} catch (error) {
  told.refused = [error instanceof BadRequestError, error.param]
}

const abandoned = await client.chat.completions.create({ ...options, max_tokens: 1900, stream: true })
for await (const _ of abandoned) break // which aborts the request
console.log(JSON.stringify(told))
