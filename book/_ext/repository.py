"""Links to the repository, when the environment says where it is.

`WBN_REPOSITORY_URL` is set by the publishing workflow. Without it the book
has no launch buttons and no "open issue" link: no address is made up.
"""

import os


def add_links(app, config):
    """Turn on the theme's repository and launch buttons."""
    url = os.environ.get("WBN_REPOSITORY_URL")
    if not url:
        return
    config.html_theme_options.update(
        repository_url=url,
        repository_branch=os.environ.get("WBN_REPOSITORY_BRANCH", "main"),
        path_to_docs="book",
        use_repository_button=True,
        use_issues_button=True,
        launch_buttons={
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
        },
    )


def setup(app):
    """Register with Sphinx, before the theme reads its options."""
    app.connect("config-inited", add_links, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
