-- Version 4: what the A/A arm did unsampled, in a sampled trial.

ALTER TABLE profile ADD COLUMN unsampled_json TEXT;
