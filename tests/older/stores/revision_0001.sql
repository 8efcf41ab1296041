-- A store as revision 0001 left it, in what SQLite and PostgreSQL both understand.
DELETE FROM changes;
DELETE FROM log_head;
DELETE FROM match_head;
INSERT INTO subscriptions (number, owner, id, kind, text, notation, name, mode, horizon, threshold, delivery, labels, expires_at, status, created_at, changed_at, revision, token, import_number) VALUES
    (1, 'ann', 'a', 'filter', 'make = ''Ümlaut'' and price < 9', 'text', 'It''s "mine"', NULL, NULL, NULL, '{"transport":"webhook","url":"https://example.org","secret":"whsec_x"}', '["cars","Gr\u00f6\u00dfe"]', 1767229200000000, 'active', 1767225600000000, 1767225600000000, 1, 1372, NULL),
    (2, 'ann', 'b', 'pattern', 'x = 1 ; x = 2', 'text', NULL, 'overlap', NULL, NULL, NULL, NULL, NULL, 'paused', 1767225600000000, 1767225601000000, 2, 1310, NULL),
    (3, 'bob', 'c', 'forecast', 'x = 1 ; x = 2', 'text', NULL, NULL, '10 own events', 0.6, NULL, NULL, NULL, 'learning', 1767225600000000, 1767225600000000, 1, 110, NULL),
    (5, 'ann', 'i1', 'filter', 'a = 1', 'text', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'active', 1767225602000000, 1767225602000000, 1, 2739, 1857245199395439653),
    (6, 'ann', 'i2', 'filter', 'a = 1', 'text', NULL, NULL, NULL, NULL, NULL, '["cars"]', NULL, 'active', 1767225602000000, 1767225602000000, 1, 1054, 1857245199395439653);
INSERT INTO subscription_labels (label, owner, id) VALUES
    ('Größe', 'ann', 'a'),
    ('cars', 'ann', 'a'),
    ('cars', 'ann', 'i2');
INSERT INTO subscription_counts (owner, status, count) VALUES
    ('ann', 'active', 3),
    ('ann', 'paused', 1),
    ('bob', 'learning', 1);
INSERT INTO removed_subscriptions (number) VALUES
    (4);
INSERT INTO changes (sequence, mark, at, owner, id, import_number) VALUES
    (0, 'fb70aee78e596ad7', 0, '', '', NULL),
    (1, 'add53e980e8b8353', 1767225600000000, 'ann', 'a', NULL),
    (2, 'add53e980e8b8353', 1767225600000000, 'ann', 'b', NULL),
    (3, 'add53e980e8b8353', 1767225600000000, 'bob', 'c', NULL),
    (4, 'add53e980e8b8353', 1767225600000000, 'ann', 'gone', NULL),
    (5, '5964538fbf310dd5', 1767225600000000, 'ann', 'b', NULL),
    (6, '5964538fbf310dd5', 1767225600000000, 'ann', 'gone', NULL),
    (7, '287beb01503fea79', 1767225602000000, 'ann', NULL, 1857245199395439653),
    (8, '59e2fcf525bd00b0', 1767225600000000, 'bob', NULL, NULL);
INSERT INTO log_head (one, sequence, mark, audit_number) VALUES
    (1, 8, '59e2fcf525bd00b0', 10);
INSERT INTO answers (owner, key, digest, at, answer) VALUES
    ('ann', 'k', 'd', 1767225600000000, '[true,"ann","a","filter","make = ''\u00dcmlaut'' and price < 9","text","It''s \"mine\"",null,null,null,"{\"transport\":\"webhook\",\"url\":\"https://example.org\",\"secret\":\"whsec_x\"}","[\"cars\",\"Gr\\u00f6\\u00dfe\"]",1767229200000000,"active",1767225600000000,1767225600000000,1,1372]');
INSERT INTO api_keys (id, owner, scopes, digest, created_at, expires_at, revoked_at, note) VALUES
    ('k1', 'ann', 'read write', 'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd', 1767225600000000, 1767225601000000, 1767225601000000, 'ü');
INSERT INTO owner_rules (owner, only_filter, subscriptions, filter_bytes, requests_per_second, events_per_second) VALUES
    ('bob', 'price > 1', 7, NULL, 0.5, NULL);
INSERT INTO matches (number, subscription, place, owner_key, kind, at, content, events, probability) VALUES
    (1, 1, 1, -8270052116146162779, 'match', 1767225600000000, 1, NULL, NULL),
    (2, 5, 1, -8270052116146162779, 'match', 1767225600000000, 1, NULL, NULL),
    (3, 3, 1, 8427126794534429842, 'forecast', 1767225600000000, 3, '["e1","e2"]', 0.75);
INSERT INTO match_contents (number, content, uses) VALUES
    (1, '["e1",{"price":3}]', 2),
    (3, '[null,{}]', 1);
INSERT INTO match_batches (query, batch, at, last) VALUES
    ('q', 1, 1767225600000000, 3);
INSERT INTO match_head (one, number) VALUES
    (1, 3);
INSERT INTO audit (number, at, actor, owner, action, id, revision) VALUES
    (1, 1767225600000000, 't', 'ann', 'create', 'a', 1),
    (2, 1767225600000000, 't', 'ann', 'create', 'b', 1),
    (3, 1767225600000000, 't', 'bob', 'create', 'c', 1),
    (4, 1767225600000000, 't', 'ann', 'create', 'gone', 1),
    (5, 1767225601000000, 't', 'ann', 'paused', 'b', 2),
    (6, 1767225600000000, 't', 'ann', 'remove', 'gone', 1),
    (7, 1767225602000000, 'importer', 'ann', 'import', '2 subscriptions', NULL),
    (8, 1767225600000000, 'cli', 'bob', 'set rules', '', NULL),
    (9, 1767225600000000, 'cli', 'ann', 'add key', 'k1', NULL),
    (10, 1767225601000000, 'cli', 'ann', 'revoke key', 'k1', NULL);
INSERT INTO reports (name, at, facts) VALUES
    ('pipeline', 1767225600000000, '{"batch":3}');
