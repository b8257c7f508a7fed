-- An edit of a buffer: asked for, shown as hunks while it streams in, accepted or rejected.
local service = require('lookup_spec.service')
local text = require('lookup_spec.text')

local M = {}

local shown = vim.api.nvim_create_namespace('lookup_spec_hunks')
local lines_of = vim.api.nvim_create_namespace('lookup_spec_lines')
local edits = {} -- by buffer

local function say(message, level)
  vim.notify('lookup-spec: ' .. message, level or vim.log.levels.INFO)
end

local function between(buffer, from, to)
  local ok, found = pcall(vim.api.nvim_buf_get_text, buffer, from[1], from[2], to[1], to[2], {})
  return ok and table.concat(found, '\n') or nil
end

--- Where a place of the text that was sent is now; nil if its line was changed since.
local function track(edit, place)
  local mark = vim.api.nvim_buf_get_extmark_by_id(edit.buffer, lines_of, place[1] + 1, {})
  if #mark == 0 then
    return nil
  end
  local line = vim.api.nvim_buf_get_lines(edit.buffer, mark[1], mark[1] + 1, false)[1]
  return line == edit.source.lines[place[1] + 1] and { mark[1], place[2] } or nil
end

--- Shows a hunk: what goes in the colour of deletions, what comes below it.
local function show(edit, event)
  local from, to, lines = text.replacement(edit.source, event)
  local now_from, now_to = track(edit, from), track(edit, to)
  if not now_from or not now_to or now_to[1] - now_from[1] ~= to[1] - from[1] then
    edit.dropped = edit.dropped + 1
    return
  end
  local below = {}
  for _, line in ipairs(lines) do
    below[#below + 1] = { { line == '' and ' ' or line, 'DiffAdd' } }
  end
  local mark = vim.api.nvim_buf_set_extmark(edit.buffer, shown, now_from[1], now_from[2], {
    end_row = now_to[1],
    end_col = now_to[2],
    hl_group = 'DiffDelete',
    virt_lines = below,
    right_gravity = false,
    end_right_gravity = true,
  })
  edit.hunks[#edit.hunks + 1] = { mark = mark, lines = lines, old = between(edit.buffer, now_from, now_to) }
end

local function region(edit, hunk)
  local mark = vim.api.nvim_buf_get_extmark_by_id(edit.buffer, shown, hunk.mark, { details = true })
  if #mark == 0 then
    return nil
  end
  return { mark[1], mark[2] }, { mark[3].end_row, mark[3].end_col }
end

--- Puts a hunk into the buffer, unless the user changed what it replaces.
local function apply(edit, hunk)
  local from, to = region(edit, hunk)
  vim.api.nvim_buf_del_extmark(edit.buffer, shown, hunk.mark)
  if not from or between(edit.buffer, from, to) ~= hunk.old then
    return false
  end
  -- Hunks of one edit are one step of undo, as long as nothing else was changed in between.
  if edit.tick == vim.api.nvim_buf_get_changedtick(edit.buffer) then
    pcall(vim.cmd, 'undojoin')
  end
  vim.api.nvim_buf_set_text(edit.buffer, from[1], from[2], to[1], to[2], hunk.lines)
  edit.tick = vim.api.nvim_buf_get_changedtick(edit.buffer)
  return true
end

local function forget(edit)
  if vim.api.nvim_buf_is_valid(edit.buffer) then
    vim.api.nvim_buf_clear_namespace(edit.buffer, shown, 0, -1)
    vim.api.nvim_buf_clear_namespace(edit.buffer, lines_of, 0, -1)
  end
  if edits[edit.buffer] == edit then
    edits[edit.buffer] = nil
  end
end

--- The hunk at the cursor, else the next one below it, else the first.
local function nearest(edit)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local best
  for number, hunk in ipairs(edit.hunks) do
    local _, to = region(edit, hunk)
    if to and to[1] >= row then
      return number
    end
    best = best or number
  end
  return best
end

local function settle(edit)
  if #edit.hunks == 0 and not edit.cancel then
    forget(edit)
  end
end

local function current()
  local edit = edits[vim.api.nvim_get_current_buf()]
  if not edit then
    say('there is no edit in this buffer.')
  end
  return edit
end

--- Called when the last event has come, or will not.
local function finish(edit, message)
  edit.cancel = nil
  if message then
    -- What came may be wrong: an answer that is no edit shows only at its end.
    edit.hunks = {}
    forget(edit)
    return say(message, vim.log.levels.ERROR)
  end
  local result = text.applied(edit.source, edit.closed)
  if vim.fn.sha256(result) ~= edit.done.result_sha256 then
    edit.hunks = {}
    forget(edit)
    return say('the changes do not fit the text that was sent; nothing was changed.', vim.log.levels.ERROR)
  end
  local notes = { #edit.closed == 0 and 'nothing to change' or #edit.closed .. ' change(s)' }
  if edit.dropped > 0 then
    notes[#notes + 1] = edit.dropped .. ' left out, because you changed the text there'
  end
  if edit.done.truncated then
    notes[#notes + 1] = 'cut off (' .. edit.done.finish_reason .. '): the rest is as it was'
  end
  say(table.concat(notes, '; ') .. '.')
  edit.finished = true
  settle(edit)
end

--- Edits a buffer after an instruction.
--- @param instruction string
--- @param first number|nil the first line, counted from 1; without, the whole buffer is edited
--- @param last number|nil the last line
function M.start(instruction, first, last)
  local buffer = vim.api.nvim_get_current_buf()
  if not vim.bo[buffer].modifiable or vim.bo[buffer].readonly then
    return say('this buffer cannot be changed.', vim.log.levels.ERROR)
  end
  if vim.trim(instruction) == '' then
    return say('say what to change.', vim.log.levels.ERROR)
  end
  if edits[buffer] then
    M.cancel()
  end
  local source, problem = text.of(buffer)
  if not source then
    return say(problem, vim.log.levels.ERROR)
  end
  local edit = { buffer = buffer, source = source, hunks = {}, closed = {}, dropped = 0 }
  edits[buffer] = edit
  for row = 0, #source.lines - 1 do
    vim.api.nvim_buf_set_extmark(buffer, lines_of, row, 0, { id = row + 1, right_gravity = true })
  end
  local body = {
    document = {
      uri = vim.uri_from_bufnr(buffer),
      language_id = vim.bo[buffer].filetype,
      version = vim.api.nvim_buf_get_changedtick(buffer),
      text = source.text,
    },
    instruction = instruction,
    stream = true,
  }
  if first then
    body.range = { start = { line = first - 1, character = 0 }, ['end'] = { line = last, character = 0 } }
  end
  edit.cancel = service.post('/v1/edits', body, function(event)
    if not vim.api.nvim_buf_is_loaded(buffer) then
      edit.cancel()
      forget(edit)
    elseif event.type == 'hunk' and event.state == 'closed' then
      edit.closed[#edit.closed + 1] = event
      show(edit, event)
    elseif event.type == 'done' then
      edit.done = event
    end
  end, function(message)
    finish(edit, message)
  end)
end

--- Accepts the hunk at the cursor, or all of them.
function M.accept(all)
  local edit = current()
  if not edit then
    return
  end
  local lost = 0
  if all then
    -- From the last to the first, so that no place moves; hunks that are still to come are accepted when asked again.
    for number = #edit.hunks, 1, -1 do
      lost = lost + (apply(edit, edit.hunks[number]) and 0 or 1)
    end
    edit.hunks = {}
  elseif #edit.hunks > 0 then
    lost = apply(edit, table.remove(edit.hunks, nearest(edit))) and 0 or 1
  end
  if lost > 0 then
    say(lost .. ' change(s) left out, because you changed the text there.', vim.log.levels.WARN)
  end
  settle(edit)
end

--- Rejects the hunk at the cursor, or all of them.
function M.reject(all)
  local edit = current()
  if not edit then
    return
  end
  while #edit.hunks > 0 do
    local hunk = table.remove(edit.hunks, nearest(edit))
    vim.api.nvim_buf_del_extmark(edit.buffer, shown, hunk.mark)
    if not all then
      break
    end
  end
  settle(edit)
end

--- Stops the edit of this buffer and forgets what is not accepted.
function M.cancel()
  local edit = current()
  if not edit then
    return
  end
  if edit.cancel then
    edit.cancel()
    edit.cancel = nil
  end
  forget(edit)
end

--- What is shown in a buffer: how many hunks wait for an answer, and whether more may come. For status lines.
function M.state(buffer)
  local edit = edits[buffer or vim.api.nvim_get_current_buf()]
  return edit and { hunks = #edit.hunks, running = edit.cancel ~= nil } or nil
end

return M
