-- As a reseller who writes German has it: J and N for yes and no, days of deletion and of cancellation.
CREATE TABLE kunden (kunden_id serial PRIMARY KEY, cpf varchar(14) NOT NULL, vorname varchar(60), nachname varchar(60), geburtsdatum date, strasse varchar(60), hausnummer varchar(10), stadt varchar(60), plz varchar(9));
CREATE TABLE vertraege (vertrag_id serial PRIMARY KEY, vertragsnummer varchar(20) NOT NULL UNIQUE, kunden_id int NOT NULL REFERENCES kunden, tarifgruppe char(1) NOT NULL, kunde_ist_zahler char(1) NOT NULL, erstellt_am timestamptz NOT NULL, abgeschlossen_am timestamptz, storniert_am timestamptz);
CREATE TABLE nachweise (nachweis_id serial PRIMARY KEY, vertrag_id int NOT NULL REFERENCES vertraege, nachweis_art varchar(60) NOT NULL, dateiname varchar(100), pfad varchar(200) NOT NULL, erstellt_am timestamptz NOT NULL, geloescht_am timestamptz);
INSERT INTO kunden VALUES (1,'529.982.247-25','Ana','Souza','1979-03-04','Rua A','1','Recife','50000-000');
INSERT INTO vertraege SELECT n,'S-'||n,1,g,CASE WHEN p THEN 'J' ELSE 'N' END,'2026-10-02 02:30Z',CASE WHEN d THEN timestamptz '2026-10-03 15:00Z' END,NULL FROM st;
INSERT INTO vertraege VALUES (9,'S-9',1,'A','J','2026-10-02 02:30Z',NULL,'2026-10-05 10:00Z');
INSERT INTO nachweise SELECT i,n,t,i||x,'nw/'||n||'/'||i||x,'2026-10-02 03:00Z',CASE WHEN del THEN timestamptz '2026-10-05 10:00Z' END FROM ev;
-- KEYS: SELECT pfad FROM nachweise
