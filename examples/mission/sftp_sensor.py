"""Waits for a file on an SFTP server, with the sensor of Airflow's own provider.

headrace providers install sftp
headrace connections add sftp_default 'sftp://user:password@host'
"""

from datetime import datetime, timedelta

from airflow.providers.sftp.sensors.sftp import SFTPSensor
from airflow.sdk import DAG

with DAG("sftp_sensor", start_date=datetime(2026, 1, 1), schedule=None):
    sensor = SFTPSensor(
        task_id="sensor",
        path="/root/test",
        execution_timeout=timedelta(seconds=60),
        timeout=3600,
        retries=2,
        mode="reschedule",
    )
