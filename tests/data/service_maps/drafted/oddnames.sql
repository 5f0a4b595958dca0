-- As a designer of tables by mouse has it: blanks, quotes, per cents, backslashes and accents in names, reserved words, schemas that differ in a blank or a capital, columns that are called as ours.
-- FILL: sales.completed_at = "concluído em (data e hora em que a venda foi concluída, no fu"
CREATE SCHEMA "Sales"; CREATE SCHEMA "public ";
CREATE TABLE "public "."Cliente %s" ("número" int PRIMARY KEY, "CPF do cliente" text NOT NULL, "nome ""completo""" text, "user" text, "select" text);
CREATE TABLE "Sales"."order" ("número" int PRIMARY KEY, "código da venda" text NOT NULL UNIQUE, "cliente\número" int REFERENCES "public "."Cliente %s", "grupo %" text NOT NULL, "cliente é responsável financeiro?" boolean NOT NULL, "criado em " timestamptz NOT NULL, "concluído em (data e hora em que a venda foi concluída, no fuso)" timestamptz, "seen_at" timestamptz, "found" text, "this" text, "looked_up" text);
CREATE TABLE "Sales"."Arquivos da ""Venda""" ("id" int PRIMARY KEY, "order" int NOT NULL REFERENCES "Sales"."order", "tipo de evidência" text NOT NULL, "caminho:completo" text NOT NULL, "criado em" timestamptz NOT NULL, "excluído em" timestamptz, "seen_at" timestamptz);
INSERT INTO "public "."Cliente %s" VALUES (1,'52998224725','Ana Souza');
INSERT INTO "Sales"."order" SELECT n,'S-'||n,1,g,p,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END FROM st;
INSERT INTO "Sales"."Arquivos da ""Venda""" SELECT i,n,t,'ev/'||n||'/'||i||x,'2026-10-02 03:00Z',CASE WHEN del THEN timestamptz '2026-10-03 15:00Z' END FROM ev;
-- KEYS: SELECT "caminho:completo" FROM "Sales"."Arquivos da ""Venda"""
