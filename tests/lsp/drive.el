;;; drive.el --- edits files as a user would, for test_emacs.py  -*- lexical-binding: t -*-

;; Behind `--' come the file to tell in what became of them, and the files.  What the page for users gives is loaded before.

(require 'json)
(require 'eglot)

(setq eglot-sync-connect 60) ; seconds: a busy machine takes its time

(defvar drive-said nil "What was said or asked, the latest first; each question is answered with yes.")

(defun drive-edit (file)
  "What becomes of FILE: its text, that text after one undo, and what was said meanwhile."
  (let ((coding-system-for-read 'utf-8-unix))
    (find-file file))
  (unless (eglot-current-server)
    (apply #'eglot (eglot--guess-contact)))
  (setq drive-said nil)
  (undo-boundary)
  (let ((tick (buffer-chars-modified-tick)) (end (+ (float-time) 30)) after)
    (lookup-spec-edit "Edit it.")
    ;; Until the command's own answer: the buffer changes before it, and it must not be taken for the next file's.
    (while (and (< (float-time) end)
                (not (and drive-said (string-prefix-p "lookup-spec: " (car drive-said)))))
      (accept-process-output nil 0.02))
    (setq after (buffer-string))
    (unless (= tick (buffer-chars-modified-tick))
      (undo-boundary)
      (let ((last-command nil)) (undo)))
    `((after . ,(substring-no-properties after))
      (undone . ,(buffer-substring-no-properties (point-min) (point-max)))
      (said . ,(vconcat drive-said)))))

(advice-add 'message :before
            (lambda (form &rest arguments)
              (when form (push (apply #'format-message form arguments) drive-said))))
(advice-add 'y-or-n-p :override (lambda (question) (push question drive-said) t))

(pcase-let ((`(,result . ,files) (cdr (member "--" command-line-args))))
  (setq command-line-args-left nil)
  (let ((became (vconcat (mapcar #'drive-edit files))))
    (with-temp-file result (insert (json-encode became))))
  (eglot-shutdown (eglot-current-server))
  (kill-emacs 0))
