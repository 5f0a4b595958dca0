"""Give the commands of ``toolkit job`` the jobs file, the log and the channels of notices."""

from dataclasses import dataclass
from functools import cached_property

from toolkit.domain.jobs.definitions import Job
from toolkit.entrypoints.cli.context import Context
from toolkit.entrypoints.jobs.finishing import Rounds
from toolkit.entrypoints.jobs.job_log import JobLog, LogForm
from toolkit.entrypoints.jobs.job_settings import JobSettings
from toolkit.entrypoints.jobs.jobs_file import load_jobs
from toolkit.entrypoints.jobs.notices.notice_settings import NoticeSettings
from toolkit.entrypoints.jobs.telling import Tell


@dataclass(frozen=True)
class Desk:
    """The jobs file, the log and the channels of notices, each opened at first use."""

    ctx: Context
    form: LogForm = LogForm.TEXT

    @cached_property
    def settings(self) -> JobSettings:
        """The settings of jobs that the environment gives."""
        return JobSettings.from_environment(self.ctx.environ, self.ctx.settings)

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """The jobs of the jobs file."""
        return load_jobs(self.settings.file, self.ctx.settings.timezone)

    @cached_property
    def tell(self) -> Tell:
        """The channels of notices."""
        return Tell(NoticeSettings.from_environment(self.ctx.environ), self.ctx.settings.timezone)

    @cached_property
    def log(self) -> JobLog:
        """The form of the lines on stderr."""
        return JobLog(self.ctx.application.clock, self.form)

    @cached_property
    def rounds(self) -> Rounds:
        """The work around the runs."""
        return Rounds(self.jobs, self.settings, self.tell, self.ctx.application.clock, self.log)
