-- Ghost text at the cursor, from the service's fill-in.
local service = require('lookup_spec.service')

local M = {}

local space = vim.api.nvim_create_namespace('lookup_spec_ghost')
local ghost, cancel, timer

local PAUSE = 150 -- milliseconds
local TOKENS = 64

--- Takes the ghost away and stops what would bring the next one.
function M.clear()
  if timer then
    timer:stop()
  end
  if cancel then
    cancel()
    cancel = nil
  end
  if ghost and vim.api.nvim_buf_is_valid(ghost.buffer) then
    vim.api.nvim_buf_clear_namespace(ghost.buffer, space, 0, -1)
  end
  ghost = nil
end

local function show(buffer, row, column, content)
  local lines = vim.split(content:gsub('\r\n', '\n'), '\n', { plain = true })
  local below = {}
  for n = 2, #lines do
    below[#below + 1] = { { lines[n] == '' and ' ' or lines[n], 'Comment' } }
  end
  vim.api.nvim_buf_set_extmark(buffer, space, row, column, {
    virt_text = { { lines[1], 'Comment' } },
    virt_text_pos = 'overlay',
    virt_lines = #below > 0 and below or nil,
  })
  ghost = { buffer = buffer, row = row, column = column, lines = lines }
end

--- Asks for what belongs at the cursor. Nothing is said if there is no service: typing goes on.
function M.ask()
  M.clear()
  local buffer = vim.api.nvim_get_current_buf()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  row = row - 1
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local before, after = lines[row + 1]:sub(1, column), lines[row + 1]:sub(column + 1)
  -- In the middle of a line a ghost would hide what stands there.
  if not after:match('^[%s%)%]}\'"`;:,]*$') then
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local above = table.concat(vim.list_slice(lines, 1, row), '\n') .. (row > 0 and '\n' or '')
  local below = table.concat(vim.list_extend({ after }, lines, row + 2), '\n') .. '\n'
  local body = { input_prefix = above, prompt = before, input_suffix = below, n_predict = TOKENS, temperature = 0 }
  cancel = service.post('/infill', body, nil, function(message, answer)
    cancel = nil
    if message or vim.trim(answer.content or '') == '' then
      return
    end
    local place = vim.api.nvim_win_get_cursor(0)
    local same = buffer == vim.api.nvim_get_current_buf() and place[1] - 1 == row and place[2] == column
    if same and tick == vim.api.nvim_buf_get_changedtick(buffer) then
      show(buffer, row, column, answer.content)
    end
  end)
end

--- Asks once the user pauses.
function M.ask_soon()
  M.clear()
  timer = timer or vim.loop.new_timer()
  timer:start(PAUSE, 0, vim.schedule_wrap(function()
    if vim.api.nvim_get_mode().mode:sub(1, 1) == 'i' then
      M.ask()
    end
  end))
end

--- Puts the ghost into the buffer; false if there is none.
function M.accept()
  if not ghost then
    return false
  end
  local now = ghost
  M.clear()
  vim.schedule(function()
    vim.api.nvim_buf_set_text(now.buffer, now.row, now.column, now.row, now.column, now.lines)
    local last = now.lines[#now.lines]
    local column = #now.lines == 1 and now.column + #last or #last
    vim.api.nvim_win_set_cursor(0, { now.row + #now.lines, column })
  end)
  return true
end

--- The ghost's text; nil if there is none.
function M.text()
  return ghost and table.concat(ghost.lines, '\n') or nil
end

return M
