"""The story of the sample: three months of sales, and every case of the minimum-evidence rules in them.

A line of ``SALES`` is a sale: what it is called, its traits, and what happens to it so many days before the end.
On one day, in the order of the line:

- ``sold``; ``marked`` as completed by the sales system; ``completed`` by the toolkit;
- ``DOC`` and the like: a file of that type is asked for and sent. ``DOC:lapsed`` is never sent, ``DOC:waiting``
  not yet; ``POV:silent`` and other words say what was sent instead of a sound file of its own. What no upload
  form takes is written by somebody who has the keys of the bucket;
- ``POV:withdrawn``: its record is withdrawn. ``POV:deleted``, ``POV:written``: somebody who has the keys of the
  bucket deletes the file, or writes another one in its place.

Of the traits, ``other payer`` says that somebody else than the contracting party pays, ``other partner`` that the
sale belongs to another partner; ``usual 3`` makes a sale common among those that fill the sample up, each at
another time. A line of ``WAIVERS`` accepts a finding of the sale from one day to another, unless it is revoked.

``README.md`` beside this module names the few codes of the catalogue that the story does not tell.
"""

from typing import Final

DAYS: Final = (84, 70, 56, 42, 28, 21, 14, 7, 3, 1, 0)
"""The days on which something happens, before the end of the story; each but the last ends with an audit."""

SALES: Final = """
document and recording                    | usual 8               | 0 sold DOC POV
separate payer                            | other payer; usual 3  | 1 sold DOC POV, 0 AUT PAYER
combined document                         | usual 2               | 3 sold BOTH, 1 POV
combined document, separate payer         | other payer; usual 1  | 1 sold BOTH POV, 0 AUT
more than the rule asks                   |                       | 14 sold DOC:link POV AUT
KYC alone                                 | usual 2               | 0 sold KYC
KYC alone, separate payer                 | other payer           | 21 sold KYC:script
combined document and a separate one      |                       | 21 sold DOC:blank, 14 BOTH POV
KYC with a recording                      |                       | 14 sold KYC, 0 POV
KYC twice                                 |                       | 28 sold KYC KYC
KYC twice, with documents                 |                       | 7 sold KYC KYC DOC
nothing yet                               | usual 2               | 0 sold
nothing for six weeks, separate payer     | other payer           | 42 sold
document came, recording on its way       |                       | 7 sold, 0 DOC POV:waiting
recording on its way, document lapsed     |                       | 7 sold, 3 DOC:lapsed, 0 POV:waiting
document on its way, recording lapsed     |                       | 21 sold, 14 POV:lapsed, 0 DOC:waiting
payer's recording on its way              | other payer           | 14 sold DOC POV, 7 PAYER:lapsed, 0 AUT:waiting
payer's document on its way               | other payer           | 28 sold DOC POV, 21 AUT:lapsed, 0 PAYER:waiting
lapsed, then requested again              |                       | 7 sold DOC, 3 POV:lapsed, 0 POV:waiting
web page sent as the recording            |                       | 14 sold DOC, 7 POV:web-page
photo sent as the document                |                       | 3 sold POV, 1 DOC:photo
the payer's files unusable                | other payer           | 42 sold DOC POV, 28 AUT:web-page PAYER:photo
photo sent as the combined document       | other payer           | 28 sold POV AUT, 21 BOTH:photo
silent recording                          |                       | 21 sold DOC, 14 POV:silent
recording cut short                       |                       | 14 sold DOC, 7 POV:cut
recording of half a second                |                       | 14 sold DOC, 7 POV:short
document cut short                        |                       | 7 sold POV, 3 DOC:cut
document behind a password                |                       | 28 sold POV, 21 DOC:locked
completed as it should be                 | usual 4               | 14 sold DOC, 7 POV, 3 completed
completed after a recording came late     |                       | 84 sold DOC, 28 POV, 21 completed
completed today                           |                       | 21 sold DOC, 14 POV, 0 completed
completed elsewhere without a recording   |                       | 56 sold DOC, 42 marked
completed, then its recording withdrawn   |                       | 70 sold DOC POV, 56 completed, 3 POV:withdrawn
conflict mended by a withdrawal           |                       | 28 sold KYC, 21 POV, 14 POV:withdrawn
recording came late, withdrawn today      |                       | 42 sold DOC, 28 POV, 0 POV:withdrawn
recording waived for a while              |                       | 28 sold DOC
recording waived, and never sent          |                       | 56 sold DOC
recording waived, waiver revoked          |                       | 42 sold DOC
unknown utility group                     | group E               | 21 sold DOC POV
utility group put right                   | group E until 28      | 56 sold DOC POV:phone
sale without a client                     | no client             | 42 sold DOC POV
client named after a month                | no client until 14    | 42 sold DOC POV
a recording used twice, first sale        |                       | 56 sold DOC POV:twin
a recording used twice, second sale       |                       | 21 sold DOC POV:twin
a recording with another tag, first sale  |                       | 42 sold DOC POV:alike
a recording with another tag, second sale |                       | 7 sold DOC POV:alike
one recording as two types                | other payer           | 14 sold BOTH POV:same AUT:same
documents deleted by mistake              | other payer           | 42 sold DOC PAYER, 3 DOC:deleted PAYER:deleted
recordings deleted by mistake             | other payer           | 42 sold BOTH POV AUT, 3 POV:deleted AUT:deleted
recording replaced after it was seen      |                       | 28 sold DOC POV, 7 POV:written
recording written after its time          |                       | 21 sold DOC, 14 POV:lapsed, 3 POV:written
empty recording                           |                       | 14 sold DOC, 7 POV:empty
document stored as a web page             |                       | 21 sold POV, 14 DOC:page
files that nobody asked for               |                       | 14 sold DOC POV, 7 AUT:stray POV:outside
moved to another partner                  | other partner until 7 | 28 sold DOC, 3 POV
"""

WAIVERS: Final = """
recording waived for a while     | MISSING_POV | 14 to -9 | The customer is abroad until next week
recording waived, and never sent | MISSING_POV | 42 to 7  | The partner repeats the call
recording waived, waiver revoked | MISSING_POV | 21 to -30; revoked 7 | The partner repeats the call
"""
