-- Drives the plugin for the tests: reads what to do, and writes what came of it as JSON.
local todo = vim.fn.json_decode(table.concat(vim.fn.readfile(vim.env.LOOKUP_SPEC_TODO), '\n'))
local said = {}
vim.notify = function(message)
  said[#said + 1] = message
end

local plugin = require('lookup_spec')

local function wait(true_now, what)
  if not vim.wait(20000, true_now, 5) then
    error('waited in vain for ' .. what)
  end
end

local steps = {
  open = function(path)
    vim.cmd('edit ' .. vim.fn.fnameescape(path))
  end,
  edit = function(arguments)
    plugin.edit.start('Edit it.', arguments.first, arguments.last)
  end,
  ended = function()
    wait(function()
      local state = plugin.edit.state()
      return not state or not state.running
    end, 'the end')
  end,
  hunks = function(count)
    wait(function()
      local state = plugin.edit.state()
      return state and state.hunks >= count
    end, 'hunks')
  end,
  command = function(command)
    vim.cmd(command)
  end,
  insert = function(place)
    vim.api.nvim_buf_set_text(0, place.row, place.column, place.row, place.column, place.lines)
  end,
  ghost = function(wanted)
    plugin.complete.ask()
    if wanted then
      wait(plugin.complete.text, 'ghost text')
      said[#said + 1] = plugin.complete.text()
      plugin.complete.accept()
      wait(function()
        return not plugin.complete.text()
      end, 'acceptance')
      vim.wait(20)
    else
      vim.wait(300)
      said[#said + 1] = tostring(plugin.complete.text())
    end
  end,
}

local ok, problem = pcall(function()
  for _, step in ipairs(todo) do
    steps[step[1]](step[2])
  end
end)
local state = plugin.edit.state()
local result = {
  said = said,
  hunks = state and state.hunks or 0,
  problem = ok and '' or tostring(problem),
  marks = #vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('lookup_spec_hunks'), 0, -1, {}),
}
vim.fn.writefile({ vim.fn.json_encode(result) }, vim.env.LOOKUP_SPEC_RESULT)
vim.cmd('qall!')
