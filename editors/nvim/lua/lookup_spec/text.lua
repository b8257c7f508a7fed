-- A buffer's text as its file has it, and places in it. Hunks count lines that end in LF, CR or CRLF.
local M = {}

local BOM = '\239\187\191'
local ENDS = { unix = '\n', dos = '\r\n', mac = '\r' }

--- What a buffer holds, with what is needed to find places in it again.
--- @return table|nil text, and nil with a message if it cannot be edited
function M.of(buffer)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  for _, line in ipairs(lines) do
    if line:find('\n', 1, true) then
      return nil, 'The buffer holds NUL bytes, so it is binary; only text can be edited.'
    end
  end
  local ending = ENDS[vim.bo[buffer].fileformat]
  local empty = #lines == 1 and lines[1] == ''
  local ended = not empty and vim.bo[buffer].endofline
  local text = table.concat(lines, ending) .. (ended and ending or '')
  local mark = vim.bo[buffer].bomb and BOM or ''
  return { lines = lines, ending = ending, ended = ended, body = text, text = mark .. text, mark = mark }
end

--- Byte offsets in `body` at which the protocol's lines begin; one more for the end.
function M.starts(body)
  local starts, at = { 0 }, 1
  while at <= #body do
    local place = body:find('[\r\n]', at)
    if not place then
      break
    end
    at = place + (body:sub(place, place + 1) == '\r\n' and 2 or 1)
    starts[#starts + 1] = at - 1
  end
  if starts[#starts] ~= #body then
    starts[#starts + 1] = #body
  end
  return starts
end

--- The text after all hunks, as the protocol has it.
function M.applied(source, hunks)
  local starts, parts, at = M.starts(source.body), {}, 0
  for _, hunk in ipairs(hunks) do
    parts[#parts + 1] = source.body:sub(at + 1, starts[hunk.old.start_line + 1]) .. hunk.text
    at = starts[hunk.old.end_line + 1]
  end
  return source.mark .. table.concat(parts) .. source.body:sub(at + 1)
end

--- A byte offset as row and column, counted from 0.
local function place(source, offset)
  local row = 0
  for _, line in ipairs(source.lines) do
    local room = #line + #source.ending
    if offset <= #line or row == #source.lines - 1 then
      return row, math.min(offset, #line)
    end
    offset = offset - room
    row = row + 1
  end
  return 0, 0
end

--- A hunk as a replacement in the buffer: from, to (row and column, counted from 0) and the lines that stand there then.
function M.replacement(source, hunk)
  local starts = M.starts(source.body)
  local first, last, text = starts[hunk.old.start_line + 1], starts[hunk.old.end_line + 1], hunk.text
  if last == #source.body and source.ended then
    -- The last line's end is no place in a buffer: it stands behind the last line, whichever that is.
    last = last - #source.ending
    if text:sub(-#source.ending) == source.ending then
      text = text:sub(1, -#source.ending - 1)
      if first > last then
        first, text = last, source.ending .. text
      end
    elseif text == '' then
      first = math.max(0, math.min(first, last) - #source.ending)
    end
  elseif source.body == '' and text:sub(-1) == '\n' then
    text = text:gsub('\r?\n$', '')
  end
  if source.ending ~= '\n' then
    text = text:gsub(source.ending, '\n')
  end
  local row, column = place(source, first)
  local end_row, end_column = place(source, last)
  return { row, column }, { end_row, end_column }, vim.split(text, '\n', { plain = true })
end

return M
