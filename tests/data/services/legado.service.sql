-- name: sales
SELECT num_venda AS id, cod_cliente AS client_id,
       CASE cod_grupo WHEN 1 THEN 'A' WHEN 2 THEN 'B' WHEN 3 THEN 'C' WHEN 4 THEN 'D' ELSE cod_grupo::text END
           AS utility_group,
       CASE fl_resp_financeiro WHEN 'S' THEN true WHEN 'N' THEN false END AS is_client_financial_responsible,
       parceiro AS partner, (dt_venda + hr_venda) AT TIME ZONE 'America/Sao_Paulo' AS created_at,
       (dt_conclusao + hr_conclusao) AT TIME ZONE 'America/Sao_Paulo' AS completed_at
FROM public.vendas
WHERE situacao IS DISTINCT FROM 'X'; -- cancelled sales are not audited

-- name: records
SELECT seq AS id, num_venda AS sale_id, arquivo AS file_name, NULL AS file_format, NULL AS type,
       CASE tp_evidencia
           WHEN 'ACT' THEN 'POV' WHEN 'ARF' THEN 'AUT' WHEN 'DCT' THEN 'DOC_CONTRATANTE'
           WHEN 'DRF' THEN 'DOC_RESPONSAVEL_FINANCEIRO' WHEN 'DCR' THEN 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO'
           ELSE tp_evidencia
       END AS evidence_type,
       ltrim(pasta, '/') || arquivo AS object_key, NULL AS requested_by,
       (dt_envio + hr_envio) AT TIME ZONE 'America/Sao_Paulo' AS requested_at, NULL AS expires_at
FROM public.evidencias;

-- name: clients
SELECT client.cod_cliente AS id, cod_externo AS external_id, regexp_replace(cpf, '[.-]', '', 'g') AS cpf, rg,
       cod_distribuidora AS number_on_dealership, matricula AS enrollment, nome AS first_name,
       sobrenome AS last_name, email, dt_nascimento AS birthdate, fone AS phone_number,
       (dt_cadastro + hr_cadastro) AT TIME ZONE 'America/Sao_Paulo' AS created_at, cod_endereco AS address_id,
       bairro AS neighborhood, instalacao AS installation_number, logradouro AS address, numero AS address_number,
       cidade AS city, cep AS zip_code
FROM public.clientes AS client LEFT JOIN public.enderecos AS place ON place.cod_cliente = client.cod_cliente;
