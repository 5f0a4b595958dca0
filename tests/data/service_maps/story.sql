-- The story of the schemas that do not tell it themselves: sales, and their evidence; one record was taken back.
CREATE TEMP TABLE st (n int, g text, p boolean, d boolean);
INSERT INTO st VALUES (1,'A',true,false),(2,'B',false,false),(3,'C',true,false),(4,'D',true,false),(5,'A',true,true),(6,'B',false,false),(7,'C',true,false);
CREATE TEMP TABLE ev (i int, n int, t text, x text, del boolean);
INSERT INTO ev VALUES (1,1,'DOC_CONTRATANTE','.pdf',false),(2,1,'POV','.mp3',false),(3,2,'DOC_CONTRATANTE','.pdf',false),(4,2,'POV','.mp3',false),
 (5,3,'KYC','.pdf',false),(6,4,'KYC','.pdf',false),(7,4,'POV','.mp3',false),(8,5,'DOC_CONTRATANTE','.pdf',false),
 (9,6,'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO','.pdf',false),(10,6,'POV','.mp3',false),(11,6,'AUT','.mp3',false),(12,7,'DOC_CONTRATANTE','.pdf',false),(13,7,'POV','.mp3',true);
CREATE TEMP VIEW live AS SELECT * FROM ev WHERE NOT del;
