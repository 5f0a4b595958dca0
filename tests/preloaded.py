"""Load what commands, jobs and exports need, before processes that are forked run them; see tests.forked."""

import boto3

import tests.integration.test_partitions
import tests.job_runner  # noqa: F401
import toolkit.entrypoints.auditing
import toolkit.entrypoints.notebook_runs
import toolkit.operations.register.bulk_load  # noqa: F401

boto3.client("s3", region_name="us-east-1", aws_access_key_id="-", aws_secret_access_key="-")
