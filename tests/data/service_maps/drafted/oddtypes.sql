-- As another engine left it: bits for flags, days as numbers, milliseconds, padded keys; the group is three tables away; the path, the name and the ending of a file stand apart.
CREATE TABLE tariff_class (id int PRIMARY KEY, letter char(1) NOT NULL);
CREATE TABLE utility (id int PRIMARY KEY, name text NOT NULL, tariff_class_id int NOT NULL REFERENCES tariff_class);
CREATE TABLE dealer (id int PRIMARY KEY, name text NOT NULL, utility_id int NOT NULL REFERENCES utility);
CREATE TABLE cliente (id char(26) PRIMARY KEY, cpf bigint NOT NULL, nome text NOT NULL, dt_nascimento int, dt_cadastro int);
CREATE TABLE venda (id char(26) PRIMARY KEY, codigo char(20) NOT NULL UNIQUE, cliente_id char(26) REFERENCES cliente, dealer_id int NOT NULL REFERENCES dealer, cliente_responsavel_financeiro bit(1) NOT NULL, dt_venda int NOT NULL, dt_conclusao int NOT NULL, cancelada bit(1) NOT NULL);
CREATE TABLE evidencia (id char(26) PRIMARY KEY, venda_id char(26) REFERENCES venda, tipo_evidencia text NOT NULL, pasta text NOT NULL, arquivo text NOT NULL, extensao char(3) NOT NULL, dt_envio bigint NOT NULL, ativo bit(1) NOT NULL);
INSERT INTO tariff_class VALUES (1,'A'),(2,'B'),(3,'C'),(4,'D');
INSERT INTO utility VALUES (11,'CEMIG',1),(12,'ENEL',2),(13,'COPEL',3),(14,'CPFL',4);
INSERT INTO dealer VALUES (21,'Loja Centro',11),(22,'Loja Norte',12),(23,'Loja Sul',13),(24,'Loja Leste',14);
INSERT INTO cliente VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAV',1234567890,'Ana Souza',19790304,20261001);
INSERT INTO venda SELECT '01'||upper(substr(md5('s'||n),1,20)),'S-'||n,'01ARZ3NDEKTSV4RRFFQ69G5FAV',ascii(g)-44,p::int::bit(1),20261001,CASE WHEN d THEN 20261003 ELSE 0 END,B'0' FROM st;
INSERT INTO venda VALUES ('01X','S-9','01ARZ3NDEKTSV4RRFFQ69G5FAV',21,B'1',20261001,0,B'1');
INSERT INTO evidencia SELECT '02'||upper(substr(md5('e'||i),1,24)),'01'||upper(substr(md5('s'||n),1,20)),lower(t),'ev/'||n,md5(i::text),substr(x,2),1790910000000,(NOT del)::int::bit(1) FROM ev;
-- KEYS: SELECT pasta||'/'||arquivo||'.'||extensao FROM evidencia
