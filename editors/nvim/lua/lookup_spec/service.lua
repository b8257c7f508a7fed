-- The service, through curl.
local sse = require('lookup_spec.sse')

local M = {}

local function decode(text)
  local ok, value = pcall(vim.fn.json_decode, text)
  return ok and value or nil
end

local function complaint(code, rest)
  local body = decode(rest)
  if type(body) == 'table' and type(body.error) == 'table' then
    return body.error.message
  end
  if code == 7 then
    return 'No service answers at ' .. M.url .. '; start one with: lookup-spec serve'
  end
  return 'The connection to the service ended early (curl: ' .. code .. ').'
end

--- Posts a body.
--- @param path string
--- @param body table
--- @param take function|nil is called with each event, where the answer is a stream of them
--- @param done function(message: string|nil, answer: table|nil) is called once, last
--- @return function cancels, so that `done` is not called any more
function M.post(path, body, take, done)
  local command = { 'curl', '--silent', '--no-buffer', '--noproxy', '127.0.0.1,localhost', '--data-binary', '@-' }
  vim.list_extend(command, { '--header', 'content-type: application/json', M.url .. path })
  if M.key ~= '' then
    vim.list_extend(command, { '--header', 'authorization: Bearer ' .. M.key })
  end
  local cancelled, whole, ended = false, {}, nil
  local feed = take and sse.parser(function(data)
    local event = decode(data)
    if cancelled or ended or not event then
      return
    end
    if event.type == 'error' then
      ended = event.error.message
    elseif event.type == 'done' then
      ended = ''
      take(event)
    else
      take(event)
    end
  end)
  local job = vim.fn.jobstart(command, {
    on_stdout = function(_, lines)
      local text = table.concat(lines, '\n')
      whole[#whole + 1] = text
      if feed then
        feed(text)
      end
    end,
    on_exit = function(_, code)
      if cancelled then
        return
      end
      if ended then
        return done(ended ~= '' and ended or nil)
      end
      local rest = table.concat(whole)
      local answer = code == 0 and not take and decode(rest) or nil
      if type(answer) == 'table' and not answer.error then
        return done(nil, answer)
      end
      done(complaint(code, rest))
    end,
  })
  if job <= 0 then
    done('curl cannot be started; it is needed to reach the service.')
    return function() end
  end
  vim.fn.chansend(job, vim.fn.json_encode(body))
  vim.fn.chanclose(job, 'stdin')
  return function()
    cancelled = true
    vim.fn.jobstop(job)
  end
end

return M
