-- Entries and evidence have kinds and arguments instead of sentences. A sentence
-- that is there stays, as an argument.
ALTER TABLE timeline RENAME COLUMN text TO names;
UPDATE timeline SET names = json_object('text', names);
UPDATE incidents SET evidence = (SELECT json_group_array(json_set(value, '$.kind', 'text')) FROM json_each(evidence))
    WHERE evidence LIKE '[{%';
ALTER TABLE incidents DROP COLUMN next_step;
