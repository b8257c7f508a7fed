-- The commands. What they do is loaded when the first one is used.
if vim.g.loaded_lookup_spec then
  return
end
vim.g.loaded_lookup_spec = true

local function edits()
  return require('lookup_spec').edit
end

vim.api.nvim_create_user_command('LookupSpecEdit', function(command)
  local first, last
  if command.range > 0 then
    first, last = command.line1, command.line2
  end
  if command.args ~= '' then
    return edits().start(command.args, first, last)
  end
  vim.ui.input({ prompt = 'What should change? ' }, function(instruction)
    if instruction then
      edits().start(instruction, first, last)
    end
  end)
end, { nargs = '*', range = true, desc = 'Edit the buffer, or the lines of the range, after an instruction' })

vim.api.nvim_create_user_command('LookupSpecAccept', function(command)
  edits().accept(command.bang)
end, { bang = true, desc = 'Accept the change at the cursor; with ! all of them' })

vim.api.nvim_create_user_command('LookupSpecReject', function(command)
  edits().reject(command.bang)
end, { bang = true, desc = 'Reject the change at the cursor; with ! all of them' })

vim.api.nvim_create_user_command('LookupSpecCancel', function()
  edits().cancel()
end, { desc = 'Stop the edit of this buffer and forget what is not accepted' })

vim.api.nvim_create_user_command('LookupSpecComplete', function()
  require('lookup_spec').complete.ask()
end, { desc = 'Ask for what belongs at the cursor' })
